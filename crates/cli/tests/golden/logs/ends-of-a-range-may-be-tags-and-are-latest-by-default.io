>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"address":"0x0000000000000000000000000000000000000001"}]}
<<header quipu-answered: 1023..1023@HASH
<< 
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"finalized","toBlock":"safe","address":"0x0000000000000000000000000000000000000001"}]}
<< 
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"earliest","toBlock":"0x0"}]}
<<header quipu-answered: 0..0@HASH
<< 
