// Off by default. Ports do not matter.
# args: --allowed-host good.example
# header: host: good.example:8545
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
# header: host: GOOD.example
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
# header: host: evil.example
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<status 403
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"invalid host specified"}}
# verb: GET /
# header: host: evil.example
>>empty
<<status 403
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"invalid host specified"}}
