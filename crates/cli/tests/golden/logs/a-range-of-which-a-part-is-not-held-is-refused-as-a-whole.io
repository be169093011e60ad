# store: gap
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0","toBlock":"0x45"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 40 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x28","toBlock":"0x28"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 40 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x3c","toBlock":"0x3c","address":"0x0000000000000000000000000000000000000001"}]}
<< {"jsonrpc":"2.0","id":1,"result":[]}
