// The order is part of the interface, names are not.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByHash","params":{"tx_hash":"0x1111111111111111111111111111111111111111111111111111111111111111"}}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"non-array args"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":{}}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"non-array args"}}
