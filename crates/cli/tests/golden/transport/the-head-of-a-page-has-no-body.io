// 405 without a body, as the method asks.
# verb: HEAD /
>>empty
<<status 405
<<header allow: post, get, options
<<empty
