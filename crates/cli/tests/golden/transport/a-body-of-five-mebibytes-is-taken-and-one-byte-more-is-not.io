// Whether its length is told or not.
>>repeat {"before": "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\"}", "unit": " ", "count": 5242829}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
>>repeat {"before": "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\"}", "unit": " ", "count": 5242830}
<<status 413
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"request body is larger than 5242880 bytes"}}
# chunked
>>repeat {"before": "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\"}", "unit": " ", "count": 5242829}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
# chunked
>>repeat {"before": "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\"}", "unit": " ", "count": 5242830}
<<status 413
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"request body is larger than 5242880 bytes"}}
