#!/usr/bin/env bash
# Indexers, unmodified: ponder and squid index the events of a chain from Quipu and from the node that made
# it, and come to the same rows. Quipu answers five logs at a time, so that all of them split their ranges.
# Ponder also follows new blocks and a reorg.

# shellcheck source=e2e/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

consumers=$work/consumers

exits 0 "ponder and squid are installed" "$root/e2e/install" consumers "$target/e2e"
cp -r "$root/e2e/consumers" "$consumers"
cp "$root/e2e/clients/events.json" "$consumers"
ln --symbolic "$target/e2e/consumers/node_modules" "$consumers/node_modules"

# ponder_indexes NAME HTTP WS: ponder on this server; $address is the port on which it tells its rows.
ponder_indexes() {
    local name=$1 project=$consumers/ponder-$1
    cp -r "$consumers/ponder" "$project"
    cd "$project"
    starts "ponder-$name" '.*Created HTTP server port=([0-9]+) .*' env PONDER_TELEMETRY_DISABLED=1 \
        EVENTS="$work/events.json" DATABASE="$project/database" CHAIN_ID="$chain_id" RPC_URL="$2" WS_URL="$3" \
        node "$consumers/node_modules/ponder/dist/esm/bin/ponder.js" --log-level debug start \
        --schema "$name" --hostname 127.0.0.1
    cd "$tools"
}

# block_of PORT: the block to which ponder has come.
block_of() {
    curl --silent "http://127.0.0.1:$1/status" | json 'value["chain"]["block"]["number"]'
}

# ponders_agree WHEN: both come to the node's tip and have the same rows, as many as the node has logs of
# these events. Ponder looks for blocks when it is told of one: empty ones are mined until it was.
ponders_agree() {
    local when=$1 tip until=$((SECONDS + 90)) node=none ours=none count
    tip=$(tip_of "$anvil")
    while [ "$SECONDS" -lt "$until" ]; do
        node=$(block_of "$ponder_node")
        ours=$(block_of "$ponder_quipu")
        [ "$node" -lt "$tip" ] || [ "$ours" -lt "$tip" ] || break
        ask "$anvil" anvil_mine 0x1 >/dev/null
        sleep 1
    done
    if [ "$node" -lt "$tip" ] || [ "$ours" -lt "$tip" ]; then
        not_ok "ponder $when: on the node at block $node, on Quipu at block $ours, expected $tip"
        tail -n 20 "$work/ponder-node.log" "$work/ponder-quipu.log" >&2
    fi
    curl --silent --fail "http://127.0.0.1:$ponder_node/rows" >"$work/node.rows"
    curl --silent --fail "http://127.0.0.1:$ponder_quipu/rows" >"$work/quipu.rows"
    count=$(ask "$anvil" eth_getLogs "$events_filter" | json 'len(value)')
    same "$(wc -l <"$work/node.rows")" "$count" "ponder $when: the node's logs are $count rows"
    exits 0 "ponder $when: the rows from Quipu are the rows from the node" \
        diff "$work/node.rows" "$work/quipu.rows"
}

# squid_indexes NAME URL: its rows are in $work/NAME.squid.
squid_indexes() {
    exits 0 "squid indexes from $1" env SQD_TRACE=sqd:processor:rpc \
        node "$consumers/squid.cjs" "$2" "$work/events.json" "$work/squid-$1"
    ! grep --quiet 'fallback to eth_getTransactionReceipt' "$output" ||
        not_ok "squid on $1 gave up on logs: $(grep 'fallback' "$output" | head -n 1)"
    # Each batch has a folder; the folders of two runs differ, their rows do not.
    find "$work/squid-$1" -name logs.jsonl | sort |
        while read -r part; do cat "$part" && echo; done | grep . >"$work/$1.squid"
}

starts_anvil
exits 0 "anvil has a chain of events" node events.mjs "$anvil"
cp "$output" "$work/events.json"
chain_id=$("$cast" chain-id --rpc-url "$anvil")
events_filter=$(json 'json.dumps({"address": value["contracts"], "fromBlock": "earliest", "topics":
    [[value["topics"][name] for name in ("TRANSFER", "APPROVAL", "MOVED")]]})' <"$work/events.json")
follows anvil "$anvil_socket" "$anvil" --logs-max 5
catches_up "$anvil"
holds_from_genesis "$anvil"

squid_indexes node "$anvil"
squid_indexes quipu "$ours"
says 'query returned more than 5 results' "squid was refused ranges and split them"
exits 0 "squid: the rows from Quipu are the rows from the node" \
    diff "$work/node.squid" "$work/quipu.squid"
every_filter=$(json 'json.dumps({"address": value["contracts"], "fromBlock": "earliest"})' \
    <"$work/events.json")
same "$(wc -l <"$work/quipu.squid")" "$(ask "$anvil" eth_getLogs "$every_filter" | json 'len(value)')" \
    "squid: every log is a row"

ponder_indexes node "$anvil" "$anvil_socket"
ponder_node=$address
ponder_indexes quipu "$ours" "ws${ours#http}"
ponder_quipu=$address
ponders_agree "after the backfill"
cp "$work/ponder-quipu.log" "$output"
says 'Updated eth_getLogs range' "ponder was refused ranges and split them"
before=$(wc -l <"$work/quipu.rows")
exits 0 "more events come" node events.mjs "$anvil" "$work/events.json"
last=$(json 'value["last"]' <"$output")
ponders_agree "after new blocks"
after=$(wc -l <"$work/quipu.rows")
[ "$after" -gt "$before" ] || not_ok "new blocks brought no row: $before before, $after after"
# The last two blocks with events go, and what was mined after them; empty ones take their place, and one
# more is what ponder sees. All that is above what ponder takes as final, 30 blocks below the tip.
depth=$(($(tip_of "$anvil") - last + 2))
ask "$anvil" anvil_reorg "$depth" '[]' >/dev/null
ask "$anvil" anvil_mine 0x1 >/dev/null
ponders_agree "after a reorg of $depth"
reorganised=$(wc -l <"$work/quipu.rows")
[ "$reorganised" -lt "$after" ] || not_ok "the reorg took no row away: $after before, $reorganised after"
