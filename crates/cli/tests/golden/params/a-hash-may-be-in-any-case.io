// Digits and prefix.
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":["0x05fa36b56fd8b67de7f44ce5af9e5e56213c90bbb6999b1c2a401db6e7b74b6e"]}
<< {"jsonrpc":"2.0","id":1,"result":"0xf86c8085019f675f8b8252089497b9eed531d2cbf02f620b0df1f41f5811b4b3a5880a88ad29a45252d0801ba0e79d2c8ba6a839dd7aa9ffa04443ca7e4ea2af1e3f111b72020bf885e5c04a39a03d48652af75322534cba6ef971813aa0f1aa8d2b3cef3d7651eda58494fb9a78"}
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":["0X05FA36B56FD8B67DE7F44CE5AF9E5E56213C90BBB6999B1C2A401DB6E7B74B6E"]}
<< {"jsonrpc":"2.0","id":1,"result":"0xf86c8085019f675f8b8252089497b9eed531d2cbf02f620b0df1f41f5811b4b3a5880a88ad29a45252d0801ba0e79d2c8ba6a839dd7aa9ffa04443ca7e4ea2af1e3f111b72020bf885e5c04a39a03d48652af75322534cba6ef971813aa0f1aa8d2b3cef3d7651eda58494fb9a78"}
