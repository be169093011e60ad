// One value, and blanks.
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}x
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}{"jsonrpc":"2.0","id":2,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"},
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>> []]
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
