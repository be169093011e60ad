# store: gap
>> {"jsonrpc":"2.0","id":1,"method":"ots_getBlockDetails","params":[50]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 50 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"ots_getBlockTransactions","params":[50,0,25]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 50 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"erigon_getHeaderByNumber","params":[50]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 50 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getRawTransactionByBlockNumberAndIndex","params":[50,0]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 50 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"ots_getBlockDetailsByHash","params":["0x1111111111111111111111111111111111111111111111111111111111111111"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: hash not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
