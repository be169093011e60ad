>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"blockHash":"0x15e9ba013e67bffc6a7152d46eba9680bb57ece9c10ae05130f32c48ccee5bca","address":"0xd827a76ca8fc529869edbcd901068bbe7b4ca7b4"}]}
<< 
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"blockHash":"0x15e9ba013e67bffc6a7152d46eba9680bb57ece9c10ae05130f32c48ccee5bca","address":"0x0000000000000000000000000000000000000001"}]}
<< 
