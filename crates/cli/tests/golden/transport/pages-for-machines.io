// GET: a status, health, readiness; anything else is told to ask by POST.
# verb: GET /
>>empty
<<text "{\"server\":\"quipu/0.1.0\",\"tip\":\"0x3ff\",\"held\":[[0,1023]]}\n"
# verb: GET /healthz
>>empty
<<header content-type: text/plain; charset=utf-8
<<text "ok\n"
# verb: GET /readyz
>>empty
<<text "ready\n"
# verb: GET /nothing
>>empty
<<status 404
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no such page; JSON-RPC is asked by POST"}}
# verb: GET /openrpc.json
>>empty
<<begins {"components":
