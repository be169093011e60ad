// 64 levels are taken, counted from the outermost; a million brackets cost nothing.
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>>repeat {"unit": "[", "count": 1000000}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
>>repeat {"unit": "{\"a\":", "count": 100000}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
