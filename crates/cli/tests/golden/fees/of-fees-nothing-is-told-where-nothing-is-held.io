// There is no newest block.
# store: empty
>> {"jsonrpc":"2.0","id":1,"method":"eth_baseFee","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no block is held yet"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_blobBaseFee","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no block is held yet"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_config","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no block is held yet"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","latest",[]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no block is held yet"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x0","latest",[]]}
<< {"jsonrpc":"2.0","id":1,"result":{"oldestBlock":"0x0","gasUsedRatio":null}}
