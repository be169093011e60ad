// The codes of execution-apis #851: no block, no list before Amsterdam. A list that is not held is 4444.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockAccessList","params":["0x400"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockAccessList","params":["pending"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockAccessList","params":["latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: access list of block 1023 not found","data":{"held":[]}}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawBlockAccessList","params":["0x1"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"resource not found: block 1 predates Amsterdam and has no access list"}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawBlockAccessList","params":["0x400"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"resource not found: unknown block"}}
