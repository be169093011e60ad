#!/usr/bin/env bash
# Blocks are taken from real nodes up to the one they call final, and held against the nodes' own answers.

# shellcheck source=e2e/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

# final_of NODE: the number of the newest block that the node calls final.
final_of() {
    ask "$1" eth_getBlockByNumber finalized false | json 'int((value or {"number": "0x0"})["number"], 16)'
}

# fills NAME NODE UPSTREAM: all final blocks, into a folder of their own; $last is the newest of them.
fills() {
    local name=$1 node=$2 upstream=$3
    names_chain "$node"
    last=$(final_of "$node")
    exits 0 "$name: quipu backfill takes blocks 0..$last over ${upstream%%:*}" "$quipu" backfill \
        --data-dir "$work/$name-data" --upstream "$upstream" "${chain_flags[@]}" --blocks "0..$last"
    exits 0 "$name: quipu check proves them again" "$quipu" check --data-dir "$work/$name-data"
    starts "quipu-$name" '^listening on (http:.*)$' \
        "$quipu" serve --data-dir "$work/$name-data" --listen 127.0.0.1:0
    ours=$address
}

starts_anvil
sends "$anvil"
sends "$anvil"
ask "$anvil" anvil_mine 0x50 >/dev/null
fills anvil "$anvil" "$anvil"
agrees anvil "$anvil" "$last" "0x0 0x1 0x2 0x4" "${anvil_habits[@]}"
sends_blob "$anvil"
blob_block=$(tip_of "$anvil")
ask "$anvil" anvil_mine 0x50 >/dev/null
exits 1 "anvil: a block whose header does not commit to its transactions is refused" "$quipu" backfill \
    --data-dir "$work/anvil-data" --upstream "$anvil" --blocks "$((last + 1))..$((blob_block + 1))"
says "block $blob_block: transactions give root .*, header says" "anvil: the block is named"

starts_geth
while [ "$(final_of "$geth_node")" -lt 32 ]; do
    sends "$geth_node"
    sends_blob "$geth_node"
done
fills geth "$geth_node" "$geth_socket"
# Without its node nobody knows the blob parameters of this chain: prices are left out, not guessed.
agrees geth "$geth_node" "$last" "0x0 0x1 0x2 0x3 0x4" receipt.blobGasPrice
exits 0 "geth: quipu compare finds no difference" \
    "$quipu" compare --data-dir "$work/geth-data" --with "$geth_node" --blocks "0..$last"
