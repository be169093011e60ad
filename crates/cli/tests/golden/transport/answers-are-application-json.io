// Refusals too.
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<header content-type: application/json
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
>> {
<<header content-type: application/json
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
# header: content-type: text/html
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<status 415
<<header content-type: application/json
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"content type must be application/json"}}
