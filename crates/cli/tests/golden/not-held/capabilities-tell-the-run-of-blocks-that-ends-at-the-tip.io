// Gaps below are told by 4444.
# store: gap
>> {"jsonrpc":"2.0","id":1,"method":"eth_capabilities","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":{"head":{"number":"0x63","hash":"0xbf142574987232f18e313e329ff8a420665391a645b63ddf5eb79ff3a076376b"},"state":{"disabled":true},"tx":{"disabled":false,"oldestBlock":"0x3c"},"logs":{"disabled":false,"oldestBlock":"0x3c"},"receipts":{"disabled":false,"oldestBlock":"0x3c"},"blocks":{"disabled":false,"oldestBlock":"0x3c"},"stateproofs":{"disabled":true}}}
