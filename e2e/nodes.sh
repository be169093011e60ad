# shellcheck shell=bash
# Real nodes on free ports, and what is sent to them; sourced, not run.
#
# Gives: what check.sh does, $cast, $anvil_habits, and the functions below. The nodes are anvil, which
# reorganises its chain when it is told to, and geth in developer mode.

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

geth=$target/e2e/bin/geth
tools=$work/nodes
cast=$tools/node_modules/.bin/cast
# Anvil's first account and its second: everyone knows their keys.
key=0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80
account=0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266
other=0x70997970C51812dc3A010C7d01b50e0d17dc79C8
# Members that anvil writes and the specification does not have; and a size without the withdrawals.
# shellcheck disable=SC2034 # the scripts that source this one use it
anvil_habits=(block.totalDifficulty block.size receipt.blockTimestamp receipt.blobGasPrice)

exits 0 "anvil and cast are installed" "$root/e2e/install" anvil "$target/e2e"
enters nodes

ask() {
    "$cast" rpc --rpc-url "$1" "${@:2}"
}

tip_of() {
    "$cast" block-number --rpc-url "$1"
}

# sends NODE: every type of transaction but blobs, a contract, one with a log, and one that fails.
sends() {
    local node=$1 list contract
    local with=(--rpc-url "$node" --private-key "$key" --json)
    list="[{\"address\":\"$other\",\"storageKeys\":[\"0x$(printf '%064d' 1)\"]}]"
    {
        "$cast" send "${with[@]}" --legacy "$other" --value 1
        "$cast" send "${with[@]}" --legacy --access-list "$list" "$other" --value 2
        "$cast" send "${with[@]}" "$other" --value 3
        "$cast" send "${with[@]}" --auth "$other" "$other" --value 4
    } >"$output"
    # What is made writes a log whenever it is called.
    contract=$("$cast" send "${with[@]}" --create 0x6a602a5f52600760205fa1005f52600b6015f3 |
        json 'value["contractAddress"]')
    "$cast" send "${with[@]}" "$contract" >/dev/null
    # An invalid instruction: made to fail, with a limit so that nobody tries it out first.
    "$cast" send "${with[@]}" --gas-limit 100000 --create 0xfe >/dev/null
}

# sends_blob NODE: a transaction with a blob. Anvil's headers do not commit to such a transaction but to
# its form on the wire, with the blob: nobody can prove such a block, and it is sent to geth alone, or to
# see it refused.
sends_blob() {
    head -c 3000 /dev/urandom >"$work/blob"
    "$cast" send --rpc-url "$1" --private-key "$key" --json --blob --path "$work/blob" "$other" \
        --value 5 >"$output"
}

# names_chain NODE: $chain_flags name the node's chain, by its own word.
names_chain() {
    chain_flags=(--chain-id "$("$cast" chain-id --rpc-url "$1")"
        --genesis-hash "$(ask "$1" eth_getBlockByNumber 0x0 false | json 'value["hash"]')")
}

# agrees NAME NODE LAST TYPES HABIT...: all that $ours answers of blocks 0 to LAST is what the node
# answers, and transactions of all these types are among it.
agrees() {
    local name=$1 node=$2 last=$3 types=$4
    exits 0 "$name: every block, transaction and receipt is the node's own" \
        node agree.mjs "$ours" "$node" "0-$last" "${@:5}"
    says "^types $types\$" "$name: $(tail -n 1 "$output"), of types $types"
}

# follows NAME NODE_WS NODE_HTTP ARGUMENT...: a server with the data folder of this name that follows the
# node; $ours is where.
follows() {
    local name=$1 socket=$2 node=$3
    shift 3
    names_chain "$node"
    starts "quipu-$name" '^listening on (http:.*)$' "$quipu" serve --data-dir "$work/$name-data" \
        --listen 127.0.0.1:0 --upstream "$socket" "${chain_flags[@]}" --backfill-to 0 "$@"
    ours=$address
}

# catches_up NODE: our tip becomes the node's.
catches_up() {
    local expected found
    expected=$(ask "$1" eth_getBlockByNumber latest false | json 'value["hash"]')
    for _ in {1..600}; do
        found=$(ask "$ours" eth_getBlockByNumber latest false | json '(value or {}).get("hash")')
        [ "$found" != "$expected" ] || break
        sleep 0.1
    done
    same "$found" "$expected" "our tip is the node's, block $(tip_of "$1")"
}

# holds_from_genesis NODE: the background has filled what was before the tip.
holds_from_genesis() {
    for _ in {1..600}; do
        [ "$(ask "$ours" eth_capabilities | json 'value["blocks"].get("oldestBlock")')" != 0x0 ] || break
        sleep 0.1
    done
    same "$(ask "$ours" eth_capabilities | json 'value["blocks"].get("oldestBlock")')" 0x0 \
        "all blocks from genesis on are held"
}

# starts_anvil: $anvil and $anvil_socket are where.
# shellcheck disable=SC2034 # the scripts that source this one use it
starts_anvil() {
    starts anvil '^Listening on (.*)$' "$tools/node_modules/.bin/anvil" --port 0
    anvil=http://$address
    anvil_socket=ws://$address
}

# starts_geth ARGUMENT...: $geth_node and $geth_socket are where; the account has ether.
starts_geth() {
    "$root/e2e/install" geth "$target/e2e"
    starts geth '.*HTTP server started +endpoint=([0-9.:]+) .*' "$geth" --dev --datadir "$work/geth" \
        --http --http.addr 127.0.0.1 --http.port 0 --ws --ws.addr 127.0.0.1 --ws.port 0 \
        --ipcdisable --nodiscover --port 0 --authrpc.port 0 "$@"
    geth_node=http://$address
    # shellcheck disable=SC2034 # the scripts that source this one use it
    geth_socket=$(sed -nE 's/.*WebSocket enabled +url=(ws:[^ ]+).*/\1/p' "$work/geth.log" | head -n 1)
    local dev
    dev=$(ask "$geth_node" eth_accounts | json 'value[0]')
    ask "$geth_node" eth_sendTransaction \
        "{\"from\":\"$dev\",\"to\":\"$account\",\"value\":\"0x56bc75e2d63100000\"}" >/dev/null
}
