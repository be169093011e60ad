// As an object with a null id.
>> []
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"empty batch"}}
>> [ ]
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"empty batch"}}
