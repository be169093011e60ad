#!/usr/bin/env bash
# Real nodes are followed while anvil reorganises its chain: what is served is held against the nodes' own
# answers, during reorgs and after them.

# shellcheck source=e2e/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

# The depths of reorgs, in this order; a finalised block of anvil is 64 below its tip.
depths=(1 2 3 5 8 13 21 34 55 60)

starts_anvil
sends "$anvil"
follows anvil "$anvil_socket" "$anvil"
catches_up "$anvil"
holds_from_genesis "$anvil"

node watch.mjs "$ours" "$anvil" >"$work/watch" 2>&1 &
watch=$!
for depth in "${depths[@]}"; do
    # A reorg needs as many blocks as it is deep, above what is final.
    while [ "$(tip_of "$anvil")" -lt $((depth + 70)) ]; do
        sends "$anvil"
        ask "$anvil" anvil_mine 0x8 >/dev/null
    done
    sends "$anvil"
    ask "$anvil" anvil_reorg "$depth" '[]' >/dev/null
    catches_up "$anvil"
    agrees "after a reorg of $depth" "$anvil" "$(tip_of "$anvil")" "0x0 0x1 0x2 0x4" \
        "${anvil_habits[@]}"
done
kill "$watch"
exits 0 "a client that asked all the time saw one chain at a time" wait "$watch"
tail -n 1 "$work/watch"

starts_geth
sends "$geth_node"
follows geth "$geth_socket" "$geth_node"
catches_up "$geth_node"
holds_from_genesis "$geth_node"
for _ in {1..5}; do
    sends "$geth_node"
    sends_blob "$geth_node"
done
catches_up "$geth_node"
agrees geth "$geth_node" "$(tip_of "$geth_node")" "0x0 0x1 0x2 0x3 0x4"
