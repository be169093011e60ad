// State, logs and proofs are not served.
>> {"jsonrpc":"2.0","id":1,"method":"eth_capabilities","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":{"head":{"number":"0x3ff","hash":"0x197e7e9f6d2e675a84d86a18fc45ee51ba44b11ea27bf9df21dd2e6518eea357"},"state":{"disabled":true},"tx":{"disabled":false,"oldestBlock":"0x0"},"logs":{"disabled":true},"receipts":{"disabled":false,"oldestBlock":"0x0"},"blocks":{"disabled":false,"oldestBlock":"0x0"},"stateproofs":{"disabled":true}}}
