// Nothing says that a range without an anchor is final; as for an unknown block.
# store: late
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["safe",false]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["finalized",false]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByBlockNumberAndIndex","params":["finalized",0]}
<< {"jsonrpc":"2.0","id":1,"result":null}
