// Never a shorter list without a word.
# store: gap
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x5","0x3e",[]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 59 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x400","latest",[]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 59 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","0x30",[]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable: block 48 not found in held blocks 0..39, 60..99","data":{"held":[[0,39],[60,99]]}}}
