// Shorter and longer.
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":["0x05fa36b56fd8b67de7f44ce5af9e5e56213c90bbb6999b1c2a401db6e7b74b"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex string has length 62, want 64 for a hash"}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":["0x05fa36b56fd8b67de7f44ce5af9e5e56213c90bbb6999b1c2a401db6e7b74b6e00"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex string has length 66, want 64 for a hash"}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":["0x00"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex string has length 2, want 64 for a hash"}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":["0x"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex string has length 0, want 64 for a hash"}}
