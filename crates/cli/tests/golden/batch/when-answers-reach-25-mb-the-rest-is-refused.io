// What was answered stays, in order; every further call gets -32003. Block 20 with its 200 transactions takes 150 KB and more.
>>repeat {"before": "[", "unit": "{\"jsonrpc\":\"2.0\",\"id\":{i},\"method\":\"eth_getBlockByNumber\",\"params\":[\"0x14\",true]}", "between": ",", "count": 400, "after": "]"}
<<begins [{"jsonrpc":"2.0","id":0,"result":{"hash":
<<ends ,{"jsonrpc":"2.0","id":398,"error":{"code":-32003,"message":"response too large"}},{"jsonrpc":"2.0","id":399,"error":{"code":-32003,"message":"response too large"}}]
