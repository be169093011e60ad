// Genesis included.
# store: late
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 0 not found in held blocks 60..99","data":{"held":[[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x3b",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 59 not found in held blocks 60..99","data":{"held":[[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":["0x3c"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x14"}
