#!/usr/bin/env bash
# Real clients, unmodified, ask a demo: viem, ethers, web3.py, cast and alloy's provider. What they get
# is held against answers worked out from the archive of the same chain without any code of Quipu's.

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

clients=$work/clients
python=$target/e2e/clients/python/bin/python
expected=$clients/expected.json
# The chain has every type of transaction, and one block before each fork and after it.
chain=(--block-count 160 --txs-per-block 4 --seed 1)

exits 0 "the clients are installed" "$root/e2e/install" clients "$target/e2e"
enters clients

exits 0 "quipu sample writes the chain as an archive" \
    "$quipu" sample --to "$clients/chain" --format ere "${chain[@]}"
"$python" expected.py "$clients"/chain/*.ere chain/genesis.json >"$expected"
ok "the expected answers are worked out"
# The same with one value that is false, and without the blocks after it.
"$python" - "$expected" >"$clients/false.json" <<'PYTHON'
import json, sys
expected = json.load(open(sys.argv[1]))
expected["blocks"] = expected["blocks"][:2]
expected["blocks"][1]["block"]["transactions"][0]["value"] = "0x7"
json.dump(expected, sys.stdout)
PYTHON

starts_demo "${chain[@]}"

# agrees CLIENT COMMAND...: the client gets all of what is expected, and tells when it does not.
agrees() {
    local client=$1
    shift
    exits 0 "$client gets what the archive says" "$@" "$url" "$expected"
    says '^[0-9]{4,} values compared, 0 differ' "$client: $(tail -n 1 "$output")"
    refuses "$client tells of a value that is not as expected" "$@" "$url" false.json
    says 'value: found .*0x7' "$client names the value"
}

agrees viem node viem.mjs
agrees ethers node ethers.mjs
agrees web3.py "$python" client_web3.py
agrees cast "$python" client_cast.py node_modules/.bin/cast
agrees alloy "$target/e2e/client-alloy/debug/client-alloy"

# What is asked for again and again is kept packed, and joined with each call's own id: gzip itself must
# read it to its end.
call='{"jsonrpc":"2.0","id":"packed","method":"eth_getBlockByNumber","params":["0x63",true]}'
asks=(curl --silent --fail --header 'content-type: application/json' --data "$call" "$url")
"${asks[@]}" >plain.json
for _ in 1 2 3; do
    "${asks[@]}" --header 'accept-encoding: gzip' >packed.gz
done
gzip --decompress --stdout packed.gz >unpacked.json
exits 0 "gzip reads a block that is kept packed" cmp plain.json unpacked.json
