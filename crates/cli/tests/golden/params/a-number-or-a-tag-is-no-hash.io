// For eth_getBlockByHash in particular.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByHash","params":["0x1",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex string of odd length"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByHash","params":["latest",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex string without 0x prefix"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByHash","params":[1,false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: non-string: a number"}}
