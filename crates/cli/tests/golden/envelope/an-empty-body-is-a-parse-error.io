// Nothing is not JSON.
>>empty
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>>text "   "
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>>text "\r\n\t"
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
