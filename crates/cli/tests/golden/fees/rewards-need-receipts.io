// Gas that each transaction used is in receipts; base fees are in headers.
# store: no-receipts
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","0x14",[50]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"receipts not found: block 20 is held without them","data":{"held":[]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","0x14",[]]}
<< {"jsonrpc":"2.0","id":1,"result":{"oldestBlock":"0x14","baseFeePerGas":["0x0","0x0"],"gasUsedRatio":[0.3048413],"baseFeePerBlobGas":["0x0","0x0"],"blobGasUsedRatio":[0]}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","0x0",[50]]}
<< {"jsonrpc":"2.0","id":1,"result":{"oldestBlock":"0x0","reward":[["0x0"]],"baseFeePerGas":["0x0","0x0"],"gasUsedRatio":[0],"baseFeePerBlobGas":["0x0","0x0"],"blobGasUsedRatio":[0]}}
