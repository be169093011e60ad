// With the reason.
# header: content-type: text/html
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<status 415
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"content type must be application/json"}}
# header: content-type: application/xml
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<status 415
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"content type must be application/json"}}
# header: content-type: application/jsonp
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<status 415
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"content type must be application/json"}}
# header: content-type: multipart/form-data; boundary=x
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<status 415
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"content type must be application/json"}}
