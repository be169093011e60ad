// reth takes it; nobody sends it.
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":[[17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17,17]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: non-string: an array"}}
