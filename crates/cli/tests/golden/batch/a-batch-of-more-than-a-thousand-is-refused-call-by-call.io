// One error for each call, so that each is told; what is no call is passed over, and if there is nothing else, one refusal stands for all.
>>repeat {"before": "[", "unit": "{\"jsonrpc\":\"2.0\",\"id\":{i},\"method\":\"eth_blockNumber\"}", "between": ",", "count": 1001, "after": "]"}
<<repeat {"before": "[", "unit": "{\"jsonrpc\":\"2.0\",\"id\":{i},\"error\":{\"code\":-32600,\"message\":\"batch too large\"}}", "between": ",", "count": 1001, "after": "]"}
>>repeat {"before": "[", "unit": "1", "between": ",", "count": 100000, "after": "]"}
<< [{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}]
>>repeat {"before": "[1,{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"eth_blockNumber\"},", "unit": "{\"jsonrpc\":\"2.0\",\"method\":\"eth_blockNumber\"}", "between": ",", "count": 1001, "after": "]"}
<< [{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"batch too large"}}]
