// A notification: nothing is run, and the body is empty.
>> {"jsonrpc":"2.0","method":"eth_blockNumber"}
<<header content-length: 0
<<empty
>> {"jsonrpc":"2.0","method":"no_such_method","params":{"a":1}}
<<empty
