// Keys in paths and versions in paths are common habits.
# verb: POST /v1/some/path?x=y
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
# verb: POST /healthz
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
