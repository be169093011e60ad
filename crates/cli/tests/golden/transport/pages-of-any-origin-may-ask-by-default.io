// The data is public and only read.
# verb: OPTIONS /
# header: origin: https://a.example
# header: access-control-request-method: POST
# header: access-control-request-headers: content-type
>>empty
<<status 204
<<header access-control-allow-origin: *
<<header access-control-allow-methods: post, get, options
<<header access-control-allow-headers: *, authorization
<<header access-control-max-age: 600
<<empty
# header: origin: https://a.example
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<header access-control-allow-origin: *
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<no-header access-control-allow-origin
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
