#!/usr/bin/env bash
# Servers and backfills that take blocks from anvil are killed at random moments, while it mines and
# reorganises: QUIPU_KILLS of them (20 unless told), at the moments of QUIPU_SEED.

# shellcheck source=e2e/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

kills=${QUIPU_KILLS:-20}
seed=${QUIPU_SEED:-$RANDOM}
# Blocks of each part of the chain that are held against the node's own in the end.
part=80

starts_anvil
sends "$anvil"
names_chain "$anvil"
exits 0 "$kills kills lose nothing that was acknowledged, and quipu check passes after each (seed $seed)" \
    node kills.mjs "$quipu" "$work" "$anvil" "$anvil_socket" "$kills" "$seed" "${chain_flags[@]}"
tail -n 1 "$output"

follows kills "$anvil_socket" "$anvil"
server=$process
catches_up "$anvil"
holds_from_genesis "$anvil"
tip=$(tip_of "$anvil")
parts="0-$part,$((tip / 2))-$((tip / 2 + part)),$((tip - part))-$tip"
exits 0 "blocks $parts are the node's own" \
    node agree.mjs "$ours" "$anvil" "$parts" "${anvil_habits[@]}"
kill "$server"
wait "$server" || true
exits 0 "quipu check passes in the end" "$quipu" check --data-dir "$work/kills-data"
