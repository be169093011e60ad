// Nothing says that the highest range is final.
# store: gap
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","finalized",[]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"finalized block not found"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","safe",[]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"safe block not found"}}
