// Never null and never an empty list: null means "not mined" to everyone who waits.
# store: no-receipts
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x05fa36b56fd8b67de7f44ce5af9e5e56213c90bbb6999b1c2a401db6e7b74b6e"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"receipts not found: block 1 is held without them","data":{"held":[]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":["0x1"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"receipts not found: block 1 is held without them","data":{"held":[]}}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawReceipts","params":["0x1"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"receipts not found: block 1 is held without them","data":{"held":[]}}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":["0x05fa36b56fd8b67de7f44ce5af9e5e56213c90bbb6999b1c2a401db6e7b74b6e"]}
<< {"jsonrpc":"2.0","id":1,"result":"0xf86c8085019f675f8b8252089497b9eed531d2cbf02f620b0df1f41f5811b4b3a5880a88ad29a45252d0801ba0e79d2c8ba6a839dd7aa9ffa04443ca7e4ea2af1e3f111b72020bf885e5c04a39a03d48652af75322534cba6ef971813aa0f1aa8d2b3cef3d7651eda58494fb9a78"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x1111111111111111111111111111111111111111111111111111111111111111"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_capabilities","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":{"head":{"number":"0x63","hash":"0xbf142574987232f18e313e329ff8a420665391a645b63ddf5eb79ff3a076376b"},"state":{"disabled":true},"tx":{"disabled":false,"oldestBlock":"0x0"},"logs":{"disabled":true},"receipts":{"disabled":true},"blocks":{"disabled":false,"oldestBlock":"0x0"},"stateproofs":{"disabled":true}}}
