// 4444 with the held ranges, for every method that names a block by number; the blocks at the edges are served.
# store: gap
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":["0x27"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x12"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x28",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 40 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":[59,true]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 59 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":["0x3c"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x14"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByBlockNumberAndIndex","params":["0x30",0]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 48 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":["0x30"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 48 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getHeaderByNumber","params":["0x30"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 48 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":["0x30"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 48 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getUncleCountByBlockNumber","params":["0x30"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 48 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x30",0]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 48 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawBlock","params":["0x30"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 48 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawHeader","params":["0x30"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 48 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawReceipts","params":["0x30"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 48 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
