// Every namespace of the method table, as go-ethereum tells them.
>> {"jsonrpc":"2.0","id":1,"method":"rpc_modules","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":{"debug":"1.0","erigon":"1.0","eth":"1.0","net":"1.0","ots":"1.0","quipu":"1.0","rpc":"1.0","web3":"1.0"}}
