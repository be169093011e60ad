// The same bytes by every way, whose hash is the transaction's; null where there is none.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getRawTransactionByHash","params":["0x05fa36b56fd8b67de7f44ce5af9e5e56213c90bbb6999b1c2a401db6e7b74b6e"]}
<< {"jsonrpc":"2.0","id":1,"result":"0xf86c8085019f675f8b8252089497b9eed531d2cbf02f620b0df1f41f5811b4b3a5880a88ad29a45252d0801ba0e79d2c8ba6a839dd7aa9ffa04443ca7e4ea2af1e3f111b72020bf885e5c04a39a03d48652af75322534cba6ef971813aa0f1aa8d2b3cef3d7651eda58494fb9a78"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getRawTransactionByBlockNumberAndIndex","params":["0x1","0x0"]}
<< {"jsonrpc":"2.0","id":1,"result":"0xf86c8085019f675f8b8252089497b9eed531d2cbf02f620b0df1f41f5811b4b3a5880a88ad29a45252d0801ba0e79d2c8ba6a839dd7aa9ffa04443ca7e4ea2af1e3f111b72020bf885e5c04a39a03d48652af75322534cba6ef971813aa0f1aa8d2b3cef3d7651eda58494fb9a78"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getRawTransactionByBlockHashAndIndex","params":["0x15e9ba013e67bffc6a7152d46eba9680bb57ece9c10ae05130f32c48ccee5bca",0]}
<< {"jsonrpc":"2.0","id":1,"result":"0xf86c8085019f675f8b8252089497b9eed531d2cbf02f620b0df1f41f5811b4b3a5880a88ad29a45252d0801ba0e79d2c8ba6a839dd7aa9ffa04443ca7e4ea2af1e3f111b72020bf885e5c04a39a03d48652af75322534cba6ef971813aa0f1aa8d2b3cef3d7651eda58494fb9a78"}
// A typed one begins with its type.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getRawTransactionByBlockNumberAndIndex","params":["latest",1]}
<< {"jsonrpc":"2.0","id":1,"result":"0x02f8868401352505058445fa42eb8481950ceb82f75794fa6191baa0db90d339d45e0b420941b94209983d80985cb2e93f00000000000000000000000091a32a4c37184840c001a027e3d3bd5edc3a3906606049cc17a06c5533b7ce2b71c6092b307315a778c631a0536a1eeaa140e81084fd575bc2917ac75dcc2ee73cdf48045e3110e2f2105c6c"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getRawTransactionByBlockNumberAndIndex","params":["0x1","0x64"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getRawTransactionByHash","params":["0x1111111111111111111111111111111111111111111111111111111111111111"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
