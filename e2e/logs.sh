#!/usr/bin/env bash
# Logs of real nodes' chains, asked for by real clients in every form that each has: viem, ethers, web3.py,
# cast, alloy's provider, go-ethereum's ethclient and cryo get from Quipu what the node itself answers, and
# so do the filter tests that go-ethereum makes from a node. Clients that watch get the logs of new blocks as
# the node delivers them. And the ways in which consumers split a range that is refused come to the same
# logs.

# shellcheck source=e2e/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

clients=$work/clients
python=$target/e2e/clients/python/bin/python
client_go=$target/e2e/bin/client-go
workload=$target/e2e/bin/workload

exits 0 "the clients are installed" "$root/e2e/install" clients "$target/e2e"
exits 0 "go-ethereum's filter tests are installed" "$root/e2e/install" workload "$target/e2e"
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

# gets_cryo: cryo too, where it is published for this Python.
gets_cryo() {
    if "$python" -c 'import cryo' 2>/dev/null; then
        gets cryo "$python" "$clients/logs_cryo.py"
    else
        echo "left out: cryo is not published for $("$python" --version) here"
    fi
}

# asks_all NAME NODE_WS NODE: every client about every form of filter.
asks_all() {
    local name=$1 socket=$2 node=$3
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
    gets ethclient "$client_go"
    gets_cryo
}

# starts_watch NAME COMMAND...: a client that watches; what it is told is in $work/NAME.watched.
starts_watch() {
    local file=$work/$1.watched
    names+=("$1")
    shift
    : >"$file"
    "$@" >"$file" 2>"$file.errors" &
    watchers+=("$!")
}

# confirms_watches: all servers have confirmed all that is watched; what comes from now on is told.
confirms_watches() {
    local index
    for index in "${!names[@]}"; do
        for _ in {1..600}; do
            ! grep --quiet watching "$work/${names[index]}.watched" || break
            kill -0 "${watchers[index]}" 2>/dev/null || break
            sleep 0.1
        done
        exits 0 "${names[index]}: every watch is confirmed" \
            grep watching "$work/${names[index]}.watched"
    done
}

# has_watched CLIENT: the client was told of all logs until now, by us and by the node.
has_watched() {
    exits 0 "$1 is told of new logs before some of them leave" node "$clients/watched.mjs" "$node" \
        "$work/filters.json" "$first" "$work/$1-node.watched" "$work/$1-ours.watched"
}

# watches CLIENT REMOVED: the client was told by us of the node's new logs as by the node, and of as many
# removed ones as the pattern says.
watches() {
    local client=$1 removed=$2 told=$work/$1-ours.watched
    local compare=(node "$clients/watched.mjs" "$node" "$work/filters.json" "$first" "$work/$1-node.watched")
    exits 0 "$client is told of new logs as by the node" "${compare[@]}" "$told"
    says '^[0-9]{4,} values compared, 0 differ' "$client: $(tail -n 1 "$output")"
    says "^[1-9][0-9]+ watched, $removed removed" "$client: $(grep watched "$output")"
    sed '3s/"data":"0x../"data":"0x07/' "$told" >"$work/false.watched"
    refuses "$client: a log that is not the node's is seen" "${compare[@]}" "$work/false.watched"
    says 'data: found "0x07' "$client: the log is shown"
    sed 3d "$told" >"$work/false.watched"
    refuses "$client: a log that does not come is seen" "${compare[@]}" "$work/false.watched"
    says ': found \[' "$client: those that came are shown"
}

# watches_all NODE_WS NODE REMOVED: clients watch for every form of filter, here and at the node, while
# blocks come, and, if logs are to be removed, while some of them leave.
watches_all() {
    local socket=$1 node=$2 removed=$3 our_socket=${ours/http/ws} first names=() watchers=() index
    first=$(($(tip_of "$node") + 1))
    # Each filter once, without what says where.
    python3 - "$work/queries.json" >"$work/filters.json" <<'PYTHON'
import json, sys
filters = {}
for query in json.load(open(sys.argv[1]))["queries"]:
    asked = {name: query["filter"][name] for name in ("address", "topics") if name in query["filter"]}
    if "blockHash" not in query["filter"]:
        filters.setdefault(json.dumps(asked), {**query, "filter": asked, "logs": []})
json.dump({"queries": list(filters.values())}, sys.stdout)
PYTHON
    starts_watch viem-ours node "$clients/watch_viem.mjs" "$ours" "$work/filters.json" "$our_socket"
    starts_watch viem-node node "$clients/watch_viem.mjs" "$node" "$work/filters.json" "$socket"
    starts_watch ethclient-ours "$client_go" "$our_socket" "$work/filters.json" watch
    starts_watch ethclient-node "$client_go" "$socket" "$work/filters.json" watch
    if [ "$removed" = 0 ]; then
        starts_watch ethers-ours node "$clients/watch_ethers.mjs" "$our_socket" "$work/filters.json"
        starts_watch ethers-node node "$clients/watch_ethers.mjs" "$socket" "$work/filters.json"
    fi
    confirms_watches
    exits 0 "new blocks come" node events.mjs "$node" "$work/events.json"
    catches_up "$node"
    if [ "$removed" != 0 ]; then
        # Blocks that come and go between two polls are told of by nobody: all have seen them first.
        has_watched viem
        has_watched ethclient
        exits 0 "five of them leave" ask "$node" anvil_reorg 5 '[]'
        catches_up "$node"
        exits 0 "others come" node events.mjs "$node" "$work/events.json"
        catches_up "$node"
    fi
    watches viem "$removed"
    watches ethclient "$removed"
    # ethers does not hand on that a log is removed.
    [ "$removed" != 0 ] || watches ethers 0
    for index in "${!names[@]}"; do
        exits 0 "${names[index]} has watched until now" kill "${watchers[index]}"
        wait "${watchers[index]}" || true
    done
    cat "$work"/*.watched.errors >&2
}

# makes_tests NODE: go-ethereum makes filter tests of the node's answers, in the background. It writes them
# after ten seconds, and does not end by itself.
makes_tests() {
    timeout 15 "$workload" filtergen --queries "$work/tests.json" "$1" >"$work/filtergen.log" 2>&1 &
    filtergen=$!
}

# passes_tests: we pass the tests that were made, and not if one expects something else.
passes_tests() {
    # Paths are taken from its folder on.
    local test run=(env --chdir "$work" "$workload" test --slow)
    exits 124 "go-ethereum makes filter tests until it is stopped" wait "$filtergen"
    # Tests of other kinds are not run; but they must be there.
    printf '{"blockNumbers":[0],"blockHashes":["0x%064d"]}' 0 >"$work/other.json"
    for test in history trace proof; do run+=("--$test-tests" other.json); done
    for test in ShortRange FullRange; do
        exits 0 "go-ethereum's filter tests $test pass" \
            "${run[@]}" --queries tests.json --run "Filter/$test" "$ours"
        says 'Made [0-9]{2,} filter queries' "$test: $(grep Made "$output")"
    done
    sed -E 's/("resultHash":"0x)[0-9a-f]{16}/\10707070707070707/' "$work/tests.json" >"$work/false-tests.json"
    refuses "go-ethereum's filter tests tell of other logs" \
        "${run[@]}" --queries false-tests.json --run Filter/ShortRange "$ours"
    says 'result mismatch' "they tell which"
}

# splits HOW: a client that splits its ranges in this way gets all of the node's logs.
splits() {
    exits 0 "a range that is split ($1) gives the node's logs" \
        node "$clients/logs_split.mjs" "$ours" "$work/queries.json" "$1"
    says '^[0-9]+ calls, of which [1-9][0-9]* were refused' "$1: $(tail -n 2 "$output" | head -n 1)"
}

# has_events NAME NODE: the node's chain has events; $work/events.json tells which.
has_events() {
    exits 0 "$1 has a chain of events" node events.mjs "$2"
    cp "$output" "$work/events.json"
}

starts_anvil
has_events anvil "$anvil"
asks_all anvil "$anvil_socket" "$anvil"
watches_all "$anvil_socket" "$anvil" '[1-9][0-9]*'

starts_geth
has_events geth "$geth_node"
makes_tests "$geth_node"
asks_all geth "$geth_socket" "$geth_node"
passes_tests
follows narrow "$geth_socket" "$geth_node" --logs-max 5
catches_up "$geth_node"
holds_from_genesis "$geth_node"
splits ponder
splits suggested
splits halves
# What is too much for one poll comes with the next.
watches_all "$geth_socket" "$geth_node" 0
