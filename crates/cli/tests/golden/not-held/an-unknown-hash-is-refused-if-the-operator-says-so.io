// What happens here by default, said aloud.
# store: gap
# args: --unknown-hash refuse
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByHash","params":["0x1111111111111111111111111111111111111111111111111111111111111111",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: hash not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByHash","params":["0x1111111111111111111111111111111111111111111111111111111111111111"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: hash not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x1111111111111111111111111111111111111111111111111111111111111111"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: hash not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByBlockHashAndIndex","params":["0x1111111111111111111111111111111111111111111111111111111111111111",0]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: hash not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
