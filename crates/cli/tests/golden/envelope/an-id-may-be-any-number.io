// Broken, negative, huge, with an exponent: as it was written. A boolean is none.
>> {"jsonrpc":"2.0","id":1.5,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":1.5,"result":"0x3ff"}
>> {"jsonrpc":"2.0","id":-1,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":-1,"result":"0x3ff"}
>> {"jsonrpc":"2.0","id":99999999999999999999999999,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":99999999999999999999999999,"result":"0x3ff"}
>> {"jsonrpc":"2.0","id":1e400,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":1e400,"result":"0x3ff"}
>> {"jsonrpc":"2.0","id":-0.0,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":-0.0,"result":"0x3ff"}
>> {"jsonrpc":"2.0","id":true,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0","id":false,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}
