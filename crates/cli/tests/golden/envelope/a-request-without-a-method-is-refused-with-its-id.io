// Missing, or of another type.
>> {"jsonrpc":"2.0","id":7}
<< {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0","id":7,"method":5}
<< {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0","id":7,"method":null}
<< {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0","id":7,"method":["eth_blockNumber"]}
<< {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request"}}
>> {}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}
