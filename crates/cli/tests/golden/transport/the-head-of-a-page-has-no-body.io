// As for the page, without it: supervisors ask so whether a server is well.
# verb: HEAD /
>>empty
<<status 200
<<header content-length: 57
<<empty
# verb: HEAD /healthz
>>empty
<<status 200
<<header content-length: 3
<<empty
# verb: HEAD /nothing
>>empty
<<status 404
<<empty
