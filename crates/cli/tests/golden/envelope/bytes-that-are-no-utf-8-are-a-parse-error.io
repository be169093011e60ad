// In a string, outside of one, cut off, overlong, half of a pair.
>>hex 7b226a736f6e727063223a22322e30222c226964223a22ff222c226d6574686f64223a226574685f626c6f636b4e756d626572227d
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>>hex 7b226a736f6e727063223a22322e30222c226964223a22c3222c226d6574686f64223a226574685f626c6f636b4e756d626572227d
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>>hex 7b226a736f6e727063223a22322e30222c226964223a22c0af222c226d6574686f64223a226574685f626c6f636b4e756d626572227d
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>>hex 7b226a736f6e727063223a22322e30222c226964223a22eda080222c226d6574686f64223a226574685f626c6f636b4e756d626572227d
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>>hex 80
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
