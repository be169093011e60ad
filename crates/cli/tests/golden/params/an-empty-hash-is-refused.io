// Length 0.
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":[""]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex string has length 0, want 64 for a hash"}}
