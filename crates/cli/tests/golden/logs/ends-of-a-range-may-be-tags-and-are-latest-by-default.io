>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"address":"0x0000000000000000000000000000000000000001"}]}
<<header quipu-answered: 1023..1023@0x4647b7c2b784641951c67e257e1a1312c43d47f35017d5d279526f4ae99aa171
<< {"jsonrpc":"2.0","id":1,"result":[]}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"finalized","toBlock":"safe","address":"0x0000000000000000000000000000000000000001"}]}
<< {"jsonrpc":"2.0","id":1,"result":[]}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"earliest","toBlock":"0x0"}]}
<<header quipu-answered: 0..0@0x72c1d592db43fadb05097330f8a93881a64bd97ca205db16326653877871a3b0
<< {"jsonrpc":"2.0","id":1,"result":[]}
