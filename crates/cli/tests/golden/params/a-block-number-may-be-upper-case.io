// Prefix and digits in any case.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":["0X1B4"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x1c"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":["0x3Ff"]}
<< {"jsonrpc":"2.0","id":1,"result":"0xc"}
