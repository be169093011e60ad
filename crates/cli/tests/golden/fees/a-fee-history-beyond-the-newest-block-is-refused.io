// In the words of nodes. Of no blocks nothing is asked of the newest, as in go-ethereum.
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","0x400",[]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"request beyond head block: requested 1024, head 1023"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x0","0x400",[]]}
<< {"jsonrpc":"2.0","id":1,"result":{"oldestBlock":"0x0","gasUsedRatio":null}}
