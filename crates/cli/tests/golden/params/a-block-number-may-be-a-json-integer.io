// A JSON integer means one thing.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":[436]}
<< {"jsonrpc":"2.0","id":1,"result":"0x1c"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":[0]}
<< {"jsonrpc":"2.0","id":1,"result":"0x0"}
