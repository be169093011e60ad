// Batches do not nest.
>> [[{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}]]
<< [{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}]
>> [[]]
<< [{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}]
