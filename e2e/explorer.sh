#!/usr/bin/env bash
# The explorer in a real browser, Debian's chromium: every page and search, proofs of good and of tampered
# answers, the playground, a chain that reorganises, a hostile chain, keys, sizes.
#
# QUIPU_SCREENSHOTS names a folder for pictures of every page: light, dark and as on a phone.

# shellcheck source=e2e/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

exits 0 "chromium is installed" "$root/e2e/install" chromium "$target/e2e"
exits 0 "playwright-core and axe-core are installed" "$root/e2e/install" explorer "$target/e2e"
enters explorer
export QUIPU_SCREENSHOTS=${QUIPU_SCREENSHOTS:-}
if [ -n "$QUIPU_SCREENSHOTS" ]; then
    mkdir -p "$QUIPU_SCREENSHOTS"
    QUIPU_SCREENSHOTS=$(cd "$root" && realpath "$QUIPU_SCREENSHOTS")
fi

# browses NAME ARGUMENT...: the checks of NAME.mjs, each of them tallied.
browses() {
    local name=$1 status=0 line
    shift
    node "$name.mjs" "$@" >"$work/$name.checks" 2>"$work/$name.errors" || status=$?
    while IFS= read -r line; do
        case $line in
        "ok: "*) ok "$name: ${line#ok: }" ;;
        "FAILED: "*) not_ok "$name: ${line#FAILED: }" ;;
        # What a failed check saw.
        *) echo "  $line" >&2 ;;
        esac
    done <"$work/$name.checks"
    # A failed check has been tallied; one that broke off has not.
    if [ "$status" -ne 0 ] && ! grep --quiet '^FAILED: ' "$work/$name.checks"; then
        not_ok "$name.mjs broke off with exit code $status"
    fi
    cat "$work/$name.errors" >&2
}

# serves NAME ARGUMENT...: a server of $work/part; $address is where.
serves() {
    starts "$1" '^listening on (http:.*)$' "$quipu" serve --data-dir "$work/part" --listen 127.0.0.1:0 "${@:2}"
}

exits 0 "what the page writes, without a browser" node --test "$root"/e2e/explorer/{format,proven,snippets,tip_state}.test.mjs

# --- a chain that is wholly there

starts_demo --block-count 160 --txs-per-block 4 --seed 1
browses pages "$url"
browses proofs "$url" "$quipu" "$root/e2e/explorer/chain.mjs"
browses playground "$url"

# --- a chain of which the first half is not held, with keys and without the explorer

exits 0 "quipu sample writes a chain" "$quipu" sample --to "$work/chain" --block-count 160 --txs-per-block 4
exits 0 "quipu import takes a part of it" "$quipu" import --data-dir "$work/part" --unanchored \
    --genesis "$work/chain/genesis.json" --blocks 100..159 "$work/chain"
serves part
browses part "$address"
"$quipu" key new --name tab >"$work/tab.key"
api_key=$(head -n 1 "$work/tab.key")
tail -n +3 "$work/tab.key" >"$work/quipu.toml"
serves keyed --config "$work/quipu.toml"
browses keys "$address" "$api_key"
serves without --no-explorer
browses without "$address"

# --- blocks of 1,500 transactions

exits 0 "quipu sample writes large blocks" "$quipu" sample --to "$work/large" --block-count 4 --txs-per-block 1500
exits 0 "quipu import takes them" "$quipu" import --data-dir "$work/large-data" \
    --genesis "$work/large/genesis.json" "$work/large"
starts large '^listening on (http:.*)$' "$quipu" serve --data-dir "$work/large-data" --listen 127.0.0.1:0
browses sizes "$url" "$address"

# --- a chain that grows and reorganises

starts_anvil
sends "$anvil"
follows anvil "$anvil_socket" "$anvil"
catches_up "$anvil"
browses live "$ours" "$anvil" "$process"

# --- a chain whose every text is hostile

starts_geth --miner.extradata '<script>alert(1)</script>' --http.api eth,net,web3,miner
node hostile_chain.mjs "$geth_node" >"$work/hostile.json"
follows geth "$geth_socket" "$geth_node"
catches_up "$geth_node"
holds_from_genesis "$geth_node"
browses hostile "$ours" "$work/hostile.json"
