// Names are exact; what would write is not served.
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x00"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method eth_sendRawTransaction does not exist/is not available"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method eth_call is not available: it needs state, which Quipu does not store; the operator can forward it to a node with --pass-through eth_call"}}
>> {"jsonrpc":"2.0","id":1,"method":"ETH_BLOCKNUMBER","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method ETH_BLOCKNUMBER does not exist/is not available"}}
>> {"jsonrpc":"2.0","id":1,"method":"","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method  does not exist/is not available"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber ","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method eth_blockNumber  does not exist/is not available"}}
>> {"jsonrpc":"2.0","id":1,"method":"a\"b\\\n","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method a\"b\\\n does not exist/is not available"}}
