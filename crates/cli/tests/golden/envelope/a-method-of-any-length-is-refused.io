// 2048 bytes are looked up, more are not.
>>repeat {"before": "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"", "unit": "m", "count": 2049, "after": "\"}"}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"method name too long: 2049 > 2048"}}
>>repeat {"before": "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"", "unit": "m", "count": 2048, "after": "\"}"}
<<begins {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method mmmm
