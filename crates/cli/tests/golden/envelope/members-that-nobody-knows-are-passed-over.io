// Whatever they hold.
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","extra":{"a":[1,{}]},"":null}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
