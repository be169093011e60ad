// One at the very beginning, in UTF-8; not elsewhere, not in UTF-16.
>>text "\ufeff{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\"}"
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
>>text "\ufeff\ufeff{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\"}"
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>>text "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\"}\ufeff"
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>>hex fffe7b007d00
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
