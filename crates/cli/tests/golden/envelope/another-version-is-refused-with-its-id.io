// Missing, of another type, or another one.
>> {"id":7,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"1.0","id":7,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":2.0,"id":7,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":null,"id":7,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0 ","id":"x","method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":"x","error":{"code":-32600,"message":"invalid request"}}
>> {"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}
