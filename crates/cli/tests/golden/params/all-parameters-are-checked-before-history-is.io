// A bad flag is told also where the block is not held or absent.
# store: gap
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x30",7]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 1: a number where true or false belongs"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0xffff",7]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 1: a number where true or false belongs"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByBlockHashAndIndex","params":["0x1111111111111111111111111111111111111111111111111111111111111111","x"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 1: hex string without 0x prefix"}}
