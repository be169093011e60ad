// 405 tells which.
# verb: PUT /
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<status 405
<<header allow: post, get, head, options
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"use POST"}}
# verb: DELETE /
>>empty
<<status 405
<<header allow: post, get, head, options
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"use POST"}}
# verb: PATCH /
>>empty
<<status 405
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"use POST"}}
