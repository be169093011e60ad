// And a page of another origin cannot slip in with a type that needs no asking.
# args: --cors-origin https://a.example
# header: origin: https://a.example
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<header access-control-allow-origin: https://a.example
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
# header: origin: https://b.example
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<no-header access-control-allow-origin
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
# header: origin: https://b.example
# header: content-type: text/plain
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<status 415
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"content type must be application/json"}}
# header: origin: https://b.example
# header: content-type:
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<status 415
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"content type must be application/json"}}
