// Strict readers would refuse the whole answer if it came back.
>> {"jsonrpc":"2.0","id":"\ud800","method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0","id":"\ud83d\ude00","method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":"\ud83d\ude00","result":"0x3ff"}
