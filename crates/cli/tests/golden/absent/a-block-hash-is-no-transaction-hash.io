// Block 1's hash finds no transaction, and its first transaction's hash no block.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByHash","params":["0xc22294b5578e724a17d4535c34f637b5fde0fc7c3893d72f6a5680c251b2a087"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0xc22294b5578e724a17d4535c34f637b5fde0fc7c3893d72f6a5680c251b2a087"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByHash","params":["0x05fa36b56fd8b67de7f44ce5af9e5e56213c90bbb6999b1c2a401db6e7b74b6e",false]}
<< {"jsonrpc":"2.0","id":1,"result":null}
