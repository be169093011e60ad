// There is nowhere to send them: WebSocket has them.
>> {"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"notifications not supported"}}

>> {"jsonrpc":"2.0","id":2,"method":"eth_unsubscribe","params":["0x1"]}
<< {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"notifications not supported"}}
