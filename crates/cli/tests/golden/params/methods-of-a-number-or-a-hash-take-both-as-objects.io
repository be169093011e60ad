// None of the six takes them; eth_getBlockReceipts and the raw methods do.
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawHeader","params":[{"blockNumber":"0x1"}]}
<< {"jsonrpc":"2.0","id":1,"result":"0xf901fda072c1d592db43fadb05097330f8a93881a64bd97ca205db16326653877871a3b0a01dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d493479404598b337394db9931ba65608f708a6c9535edfba0c65c874cd8a5b03d7b54c460ce985145f72e2ed91672963528a21f95e586d155a09353f774b0d302d7cc64bc42c2c949ef6a1860f5d7d39fba197e78c5e2c30095a096b4cb78adcb99b6418c59983406be02c336d054e500c475696e2943b08d5c14b90100002000000000400810000000d0000000000002010000000000000000000000003000000a000401400400000440040004000000040000008000800000000008000020000000000000004000180000b0208000000200000000000000008002000010001200000001000000000024400804000200000000200000400090000000010000000001000000000080000000002010000001000200080000005002000000401008000280000800000000008000820200000010000000000000002000000000000002000080000220004002100000000000010040001800000008004002020000401000000020000000000000000020000000000010401208004000008000850400d1b964018401c9c38083093f39846955b90c80a084eca70f6283d3380ab63dc160f3bf9298c47c6a7b4763d158d04303a680f5eb887a452e30c864b2e0"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":[{"blockHash":"0x1111111111111111111111111111111111111111111111111111111111111111"}]}
<< {"jsonrpc":"2.0","id":1,"result":null}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":[{}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: an object without blockHash or blockNumber"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":[{"blockNumber":"x"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex string without 0x prefix"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":[{"blockNumber":"latest"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex string without 0x prefix"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":[{"blockNumber":"0x1","blockHash":"0x1111111111111111111111111111111111111111111111111111111111111111"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: an object with more than one of blockHash and blockNumber"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":[null]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: non-string: null"}}
