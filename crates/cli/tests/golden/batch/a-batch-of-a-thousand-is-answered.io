// viem sends as many.
>>repeat {"before": "[", "unit": "{\"jsonrpc\":\"2.0\",\"id\":{i},\"method\":\"eth_blockNumber\"}", "between": ",", "count": 1000, "after": "]"}
<<repeat {"before": "[", "unit": "{\"jsonrpc\":\"2.0\",\"id\":{i},\"result\":\"0x3ff\"}", "between": ",", "count": 1000, "after": "]"}
