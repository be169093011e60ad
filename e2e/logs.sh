#!/usr/bin/env bash
# Logs of real nodes' chains, asked for by real clients in every form that each has: viem, ethers, web3.py,
# cast, alloy's provider and go-ethereum's ethclient get from Quipu what the node itself answers. And the
# ways in which consumers split a range that is refused come to the same logs.

# shellcheck source=e2e/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

clients=$work/clients
python=$target/e2e/clients/python/bin/python

exits 0 "the clients are installed" "$root/e2e/install" clients "$target/e2e"
cp -r "$root/e2e/clients" "$clients"
ln --symbolic "$target/e2e/clients/node_modules" "$clients/node_modules"

# gets CLIENT COMMAND...: the client gets from $ours the node's logs, and tells when it does not.
gets() {
    local client=$1
    shift
    exits 0 "$client gets the node's logs" "$@" "$ours" "$work/queries.json"
    says '^[0-9]{2,} values compared, 0 differ' "$client: $(tail -n 1 "$output")"
    refuses "$client tells of a log that is not the node's" "$@" "$ours" "$work/false.json"
    says '(07){32}|(7 ){31}7' "$client shows the log"
}

# asks_all NAME NODE_WS NODE: every client about every form of filter.
asks_all() {
    local name=$1 socket=$2 node=$3
    exits 0 "$name has a chain of events" node events.mjs "$node"
    cp "$output" "$work/events.json"
    exits 0 "$name answers every form of filter" node queries.mjs "$node" "$work/events.json"
    cp "$output" "$work/queries.json"
    # The first with one value that is false.
    python3 - "$work/queries.json" >"$work/false.json" <<'PYTHON'
import json, sys
query = json.load(open(sys.argv[1]))["queries"][0]
query["logs"][3]["data"] = "0x" + "07" * 32
json.dump({"queries": [query]}, sys.stdout)
PYTHON
    follows "$name" "$socket" "$node"
    catches_up "$node"
    holds_from_genesis "$node"
    gets viem node "$clients/logs_viem.mjs"
    gets ethers node "$clients/logs_ethers.mjs"
    gets web3.py "$python" "$clients/logs_web3.py"
    gets cast "$python" "$clients/logs_cast.py" "$cast"
    gets alloy "$target/e2e/client-alloy/debug/client-alloy"
    gets ethclient "$target/e2e/bin/client-go"
}

# splits HOW: a client that splits its ranges in this way gets all of the node's logs.
splits() {
    exits 0 "a range that is split ($1) gives the node's logs" \
        node "$clients/logs_split.mjs" "$ours" "$work/queries.json" "$1"
    says '^[0-9]+ calls, of which [1-9][0-9]* were refused' "$1: $(tail -n 2 "$output" | head -n 1)"
}

starts_anvil
asks_all anvil "$anvil_socket" "$anvil"

starts_geth
asks_all geth "$geth_socket" "$geth_node"
follows narrow "$geth_socket" "$geth_node" --logs-max 5
catches_up "$geth_node"
holds_from_genesis "$geth_node"
splits ponder
splits suggested
splits halves
