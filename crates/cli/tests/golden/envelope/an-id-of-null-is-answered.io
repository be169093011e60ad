// It is a call, not a notification.
>> {"jsonrpc":"2.0","id":null,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":null,"result":"0x3ff"}
