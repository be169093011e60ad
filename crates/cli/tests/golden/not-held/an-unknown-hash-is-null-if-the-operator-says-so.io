// Numbers in gaps stay refused.
# store: gap
# args: --unknown-hash null
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByHash","params":["0x1111111111111111111111111111111111111111111111111111111111111111",false]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByHash","params":["0x1111111111111111111111111111111111111111111111111111111111111111"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x1111111111111111111111111111111111111111111111111111111111111111"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByBlockHashAndIndex","params":["0x1111111111111111111111111111111111111111111111111111111111111111",0]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x30",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 48 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
