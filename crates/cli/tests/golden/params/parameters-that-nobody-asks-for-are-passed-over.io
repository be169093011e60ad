// Not fatal, whatever they are.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":["0x1",{"a":[1]},null]}
<< {"jsonrpc":"2.0","id":1,"result":"0xd"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[1,2,3]}
<< {"jsonrpc":"2.0","id":1,"result":"0x1352505"}
