# args: --logs-max 5
// Ponder, rindexer and graph-node split by the first sentence, HyperIndex by the second.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x20","address":"0xd827a76ca8fc529869edbcd901068bbe7b4ca7b4"}]}
<<no-header quipu-answered
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"query returned more than 5 results (--logs-max). Try with this block range [0x1, 0x7]. In decimal: retry with the range 1-7.","data":{"from":"0x1","to":"0x7","limit":5}}}
// One block is always answered.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x1"}]}
<<begins {"jsonrpc":"2.0","id":1,"result":[{"address":
