// Below genesis there is nothing to leave out; of more than 1024 blocks the newest are told.
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x10","0x1",[]]}
<< {"jsonrpc":"2.0","id":1,"result":{"oldestBlock":"0x0","baseFeePerGas":["0x0","0x0","0x0"],"gasUsedRatio":[0,0.0202003],"baseFeePerBlobGas":["0x0","0x0","0x0"],"blobGasUsedRatio":[0,0]}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x0","latest",[]]}
<< {"jsonrpc":"2.0","id":1,"result":{"oldestBlock":"0x0","gasUsedRatio":null}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","pending",[]]}
<< {"jsonrpc":"2.0","id":1,"result":{"oldestBlock":"0x0","gasUsedRatio":null}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x2","pending",[]]}
<< {"jsonrpc":"2.0","id":1,"result":{"oldestBlock":"0x3ff","baseFeePerGas":["0x7","0x7"],"gasUsedRatio":[0.016660733333333334],"baseFeePerBlobGas":["0x1","0x1"],"blobGasUsedRatio":[0.47619047619047616]}}
