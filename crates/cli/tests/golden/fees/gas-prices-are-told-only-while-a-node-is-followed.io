// What was enough long ago says nothing of now.
>> {"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no gas price without the tip: no node is followed, or its tip is not reached; ask a node"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_maxPriorityFeePerGas","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no gas price without the tip: no node is followed, or its tip is not reached; ask a node"}}
