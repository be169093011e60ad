// Not with an empty list either.
>> [{"jsonrpc":"2.0","method":"eth_blockNumber"},{"jsonrpc":"2.0","method":"eth_chainId"}]
<<header content-length: 0
<<empty
