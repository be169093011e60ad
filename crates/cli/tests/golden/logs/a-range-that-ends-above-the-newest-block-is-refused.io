>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x3ff","toBlock":"0x400"}]}
<<no-header quipu-answered
<< 
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x400","toBlock":"0x401"}]}
<< 
