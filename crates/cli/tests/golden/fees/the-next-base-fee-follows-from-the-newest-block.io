// The base fee of the block above, and what blob gas costs in the newest.
>> {"jsonrpc":"2.0","id":1,"method":"eth_baseFee","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":"0x7"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_blobBaseFee","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":"0x1"}
