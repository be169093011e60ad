#!/usr/bin/env bash
# A chain that go-ethereum made across the Amsterdam fork, where it lies beside the checkout: proven,
# imported, exported, served and followed, and every answer held against the node's own, as recorded.

# shellcheck source=e2e/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

data=${QUIPU_TEST_DATA:-$root/../shared/data}/amsterdam
if [ ! -d "$data" ]; then
    echo "skipped: there is no $data"
    exit 0
fi
data=$(cd "$data" && pwd)
echo "reading $data"
archive=$data/amsterdam-00000-41511eb0-noproofs.ere
chain_id=7928001
# The first block of Amsterdam, and the last block.
fork=11
last=60

# starts_recorded TIP: a node with the recorded chain up to this block; $node and $node_socket are where.
starts_recorded() {
    starts "recorded-$1" '^listening on (.*)$' node recorded.mjs "$data/rpc.jsonl.gz" "$chain_id" \
        "$cast" "$fork" "$1"
    node=http://$address
    node_socket=ws://$address
}

exits 0 "the chain is proven with its genesis file" \
    "$quipu" verify --genesis "$data/genesis.json" "$archive"
says " linked" "it is linked to genesis"
exits 0 "the chain is proven with nothing but its archive" "$quipu" verify "$archive"

folder=$work/amsterdam
exits 0 "the chain is imported" \
    "$quipu" import --data-dir "$folder" --genesis "$data/genesis.json" "$archive"
exits 0 "quipu check proves it again" "$quipu" check --data-dir "$folder"
exits 0 "the chain is exported" "$quipu" export --data-dir "$folder" --format ere --to "$work/out"
exits 0 "the export is the same file" cmp "$archive" "$work/out/$(basename "$archive")"

starts_recorded "$last"
exits 0 "quipu compare finds no difference to the recorded answers" "$quipu" compare \
    --data-dir "$folder" --with "$node" --blocks "0..$last" --txs-per-block 1000
says ": no differences$" "$(tail -n 1 "$output")"
starts quipu-amsterdam '^listening on (http:.*)$' \
    "$quipu" serve --data-dir "$folder" --listen 127.0.0.1:0
ours=$address
agrees "quipu serve" "$node" "$last" "0x0 0x1 0x2 0x3 0x4"

exits 0 "all that is final is taken from the node" "$quipu" backfill --data-dir "$work/filled" \
    --genesis "$data/genesis.json" --upstream "$node_socket" --blocks "0..$((last - 8))"
exits 0 "quipu check proves what was taken" "$quipu" check --data-dir "$work/filled"

# The same chain, followed from below the fork on, with a reorg at the fork.
starts_recorded $((fork - 1))
starts quipu-across '^listening on (http:.*)$' "$quipu" serve --data-dir "$work/across" \
    --listen 127.0.0.1:0 --genesis "$data/genesis.json" --upstream "$node_socket" --backfill-to 0
ours=$address
across=$process
catches_up "$node"
holds_from_genesis "$node"
exits 0 "a node is followed across the fork, and through a reorg there" \
    node amsterdam.mjs "$ours" "$node" "$fork" "$last"
tail -n 1 "$output"
agrees "across the fork" "$node" "$last" "0x0 0x1 0x2 0x3 0x4"
kill "$across"
exits 0 "the server stops" wait "$across"
same "$(grep --count --extended-regexp "quarantined|contradict" "$work/quipu-across.log")" 0 \
    "the node was believed all the time"
exits 0 "quipu check proves what was followed" "$quipu" check --data-dir "$work/across"
