// Good JSON, but no request.
>> 1
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}
>> null
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}
>> "eth_blockNumber"
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}
>> true
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}
>> -1.5e3
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}
