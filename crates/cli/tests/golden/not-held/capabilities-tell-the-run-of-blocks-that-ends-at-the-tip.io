// Gaps below are told by 4444.
# store: gap
>> {"jsonrpc":"2.0","id":1,"method":"eth_capabilities","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":{"head":{"number":"0x63","hash":"0x0fbeaf1ee16af9133b8fede92a567a996352c97779105979693976e455860134"},"state":{"disabled":true},"tx":{"disabled":false,"oldestBlock":"0x3c"},"logs":{"disabled":true},"receipts":{"disabled":false,"oldestBlock":"0x3c"},"blocks":{"disabled":false,"oldestBlock":"0x3c"},"stateproofs":{"disabled":true}}}
