// The same at rpc.discover and /openrpc.json.
>> {"jsonrpc":"2.0","id":1,"method":"rpc.discover","params":[]}
<<begins {"jsonrpc":"2.0","id":1,"result":{"components":
