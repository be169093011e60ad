// Whatever the ids; notifications leave no gap. Equal ids are the caller's matter.
>> [{"jsonrpc":"2.0","id":3,"method":"eth_blockNumber"},{"jsonrpc":"2.0","id":"1","method":"eth_blockNumber"},{"jsonrpc":"2.0","method":"eth_chainId"},{"jsonrpc":"2.0","id":2,"method":"eth_chainId","params":[]},{"jsonrpc":"2.0","id":null,"method":"nothing","params":[]},{"jsonrpc":"2.0","id":3,"method":"eth_blockNumber"}]
<< [{"jsonrpc":"2.0","id":3,"result":"0x3ff"},{"jsonrpc":"2.0","id":"1","result":"0x3ff"},{"jsonrpc":"2.0","id":2,"result":"0x1352505"},{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"the method nothing does not exist/is not available"}},{"jsonrpc":"2.0","id":3,"result":"0x3ff"}]
>> [{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}]
<< [{"jsonrpc":"2.0","id":1,"result":"0x3ff"}]
