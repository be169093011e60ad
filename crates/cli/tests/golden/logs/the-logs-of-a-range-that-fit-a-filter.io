// The header names the blocks that were searched, and the hash of the last.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x40","address":"0xd827a76ca8fc529869edbcd901068bbe7b4ca7b4","topics":["0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c","0x0000000000000000000000001261231db623a1f9d818afc55a28cf8f2a04606a"]}]}
<<header quipu-answered: 1..64@HASH
<< 
