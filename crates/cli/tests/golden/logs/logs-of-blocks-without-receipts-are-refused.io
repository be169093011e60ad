# store: no-receipts
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0","toBlock":"0x5"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"receipts not found: block 0 is held without them","data":{"held":[]}}}
