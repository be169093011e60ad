// A result without a method.
>> {"jsonrpc":"2.0","id":7,"result":"0x1"}
<< {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}
<< {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request"}}
