// Any number of them, before and after and between.
>>repeat {"unit": " ", "count": 1000, "after": "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\"}"}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
>>text "\n\t {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\"}\r\n "
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
>>text "{ \"jsonrpc\" :\n\"2.0\" , \"id\"\t: 1 ,\r\n\"method\" : \"eth_blockNumber\" , \"params\" : [ ] }"
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
