// A hash in a number's place is a mistake of the caller.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1111111111111111111111111111111111111111111111111111111111111111",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex number > 64 bits"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0000000000000000000000000000000000000000000000000000000000000000",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex number of 64 digits, leading zeros included: at most 63 are read"}}
