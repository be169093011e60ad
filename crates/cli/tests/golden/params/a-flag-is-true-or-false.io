// Nothing that stands for it.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1","true"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 1: a string where true or false belongs"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",1]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 1: a number where true or false belongs"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1","0x1"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 1: a string where true or false belongs"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",0]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 1: a number where true or false belongs"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",[]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 1: an array where true or false belongs"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",{}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 1: an object where true or false belongs"}}
