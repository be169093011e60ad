// A value alone.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByHash","params":"0x1111111111111111111111111111111111111111111111111111111111111111"}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"non-array args"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":0}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"non-array args"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":false}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"non-array args"}}
