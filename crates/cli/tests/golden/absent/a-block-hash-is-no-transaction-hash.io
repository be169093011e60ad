// Block 1's hash finds no transaction, and its first transaction's hash no block.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByHash","params":["0x15e9ba013e67bffc6a7152d46eba9680bb57ece9c10ae05130f32c48ccee5bca"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x15e9ba013e67bffc6a7152d46eba9680bb57ece9c10ae05130f32c48ccee5bca"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByHash","params":["0x05fa36b56fd8b67de7f44ce5af9e5e56213c90bbb6999b1c2a401db6e7b74b6e",false]}
<< {"jsonrpc":"2.0","id":1,"result":null}
