// Raw, escapes included.
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
>> {"jsonrpc":"2.0","id":0,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":0,"result":"0x3ff"}
>> {"jsonrpc":"2.0","id":"a","method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":"a","result":"0x3ff"}
>> {"jsonrpc":"2.0","id":"","method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":"","result":"0x3ff"}
>> {"jsonrpc":"2.0","id":"\u0061\n\"é","method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":"\u0061\n\"é","result":"0x3ff"}
>> {"jsonrpc":"2.0","id":18446744073709551615,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":18446744073709551615,"result":"0x3ff"}
