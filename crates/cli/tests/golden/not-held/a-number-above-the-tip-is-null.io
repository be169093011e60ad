// Not mined yet, for all we know.
# store: gap
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x64",false]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByBlockNumberAndIndex","params":["0x64",0]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0xffffffffffffffff",false]}
<< {"jsonrpc":"2.0","id":1,"result":null}
