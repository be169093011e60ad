// Null and an empty list stand for any value; a log needs as many topics as there are positions.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x2","address":null,"topics":[[],"0x0000000000000000000000001261231db623a1f9d818afc55a28cf8f2a04606a"]}]}
<< 
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x8","address":["0xd827a76ca8fc529869edbcd901068bbe7b4ca7b4","0x0000000000000000000000000000000000000001"],"topics":[["0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c","0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"],["0x0000000000000000000000001261231db623a1f9d818afc55a28cf8f2a04606a"]]}]}
<< 
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x8","address":"0xd827a76ca8fc529869edbcd901068bbe7b4ca7b4","topics":[null,null,null,null]}]}
<< 
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0","toBlock":"latest","topics":["0x00000000000000000000000000000000000000000000000000000000000000ff"]}]}
<< 
