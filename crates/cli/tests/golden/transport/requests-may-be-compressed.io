// gzip and zstd; what does not decompress is told, and so is what is not known.
# header: content-encoding: gzip
>>hex 1f8b0800000000000203ab56ca2acecf2b2a4856b25232d23350d251ca4c51b232d451ca4d2dc9c807329580747c524e7e72b65f696e526a91522d00ebab72b033000000
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
# header: content-encoding: zstd
>>hex 28b52ffd04589901007b226a736f6e727063223a22322e30222c226964223a312c226d6574686f64223a226574685f626c6f636b4e756d626572227d052c8896
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
# header: content-encoding: identity
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<< {"jsonrpc":"2.0","id":1,"result":"0x3ff"}
# header: content-encoding: gzip
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}
<<status 400
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"request body does not decompress"}}
# header: content-encoding: gzip
>>hex 1f8b0800000000000203ab56ca2acecf2b2a4856b25232d23350d251ca4c51b232d451ca4d2dc9c807329580747c524e7e72b65f696e526a9152
<<status 400
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"request body does not decompress"}}
# header: content-encoding: deflate
>>hex 1f8b0800000000000203ab56ca2acecf2b2a4856b25232d23350d251ca4c51b232d451ca4d2dc9c807329580747c524e7e72b65f696e526a91522d00ebab72b033000000
<<status 415
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"content encoding not supported"}}
>>hex 1f8b0800000000000203ab56ca2acecf2b2a4856b25232d23350d251ca4c51b232d451ca4d2dc9c807329580747c524e7e72b65f696e526a91522d00ebab72b033000000
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
