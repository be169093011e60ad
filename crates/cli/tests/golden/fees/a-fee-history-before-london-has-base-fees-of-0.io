// Before London there is no base fee and before Cancun no blob gas: 0, as nodes say. Rewards are then whole gas prices.
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x2","0x14",[50]]}
<< {"jsonrpc":"2.0","id":1,"result":{"oldestBlock":"0x13","reward":[["0x80e6a042c"],["0x773594000"]],"baseFeePerGas":["0x0","0x0","0x0"],"gasUsedRatio":[0.02520673333333333,0.3048413],"baseFeePerBlobGas":["0x0","0x0","0x0"],"blobGasUsedRatio":[0,0]}}
