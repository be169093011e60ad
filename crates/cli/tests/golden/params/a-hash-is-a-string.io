// Every other type of JSON.
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":[null]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: non-string: null"}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":[1]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: non-string: a number"}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":[{}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: non-string: an object"}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":[true]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: non-string: a boolean"}}
