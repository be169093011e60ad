// By its weights; short ones never.
# header: accept-encoding: gzip
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0",false]}
<<header content-encoding: gzip
<<header vary: accept-encoding
<<any
# header: accept-encoding: gzip;q=0.5, zstd
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0",false]}
<<header content-encoding: zstd
<<any
# header: accept-encoding: br
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0",false]}
<<header content-encoding: br
<<any
# header: accept-encoding: gzip
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<no-header content-encoding
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
# header: accept-encoding: identity
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0",false]}
<<no-header content-encoding
<<begins {
# header: accept-encoding: deflate
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0",false]}
<<no-header content-encoding
<<begins {
