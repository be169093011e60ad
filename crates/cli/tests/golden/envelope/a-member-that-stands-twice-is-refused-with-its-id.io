// Also by an escaped name; keys that mean nothing here may repeat. Of two ids neither is believed.
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","method":"eth_chainId"}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[],"params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0","id":1,"id":2,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","m\u0065thod":"eth_chainId"}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","x":1,"x":2}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
>> {"jsonrpc":"2.0","ID":2,"id":1,"method":"eth_blockNumber","Method":"x"}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
