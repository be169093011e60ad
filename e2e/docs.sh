#!/usr/bin/env bash
# Every command of README and of the documents on the data folder and on operations, in the order in which
# they are printed.

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

mkdir "$work/bin"
ln -s "$quipu" "$work/bin/quipu"
ln -s "$root/packaging/quipu-backup" "$work/bin/quipu-backup"
export PATH=$work/bin:$PATH HOME=$work
unset XDG_DATA_HOME

# Prints the commands of a document's console blocks, one a line, without their comments.
commands() {
    awk '/^```console$/ { on = 1; next } /^```$/ { on = 0 } on' | sed -E 's/ +#.*$//'
}

# runs WHAT: every command of standard input ends well, one after the other in one folder.
runs() {
    local what=$1 line count=0
    mkdir "$work/$what"
    cd "$work/$what"
    while IFS= read -r line; do
        count=$((count + 1))
        exits 0 "$what: $line" bash -c "$line"
    done
    cd "$root"
    if [ "$count" -eq 0 ]; then
        not_ok "$what: no command found"
    fi
}

# Servers of README by the port that it prints: the process, and where it listens here.
declare -A processes=() addresses=()

# serves PORT PATTERN COMMAND: starts a server, in place of the one that was on this port.
serves() {
    local port=$1
    if [ -n "${processes[$port]:-}" ]; then
        kill "${processes[$port]}"
        wait "${processes[$port]}" || true
    fi
    starts "readme-$port-$count" "$2" bash -c "exec $3"
    processes[$port]=$process
    addresses[$port]=$address
}

# here LINE: the line with the addresses of the servers that run.
here() {
    local line=$1 port
    for port in "${!addresses[@]}"; do
        line=${line//localhost:$port/${addresses[$port]}}
        line=${line//127.0.0.1:$port/${addresses[$port]}}
    done
    echo "$line"
}

mkdir "$work/readme-commands"
cd "$work/readme-commands"
count=0
commands <"$root/README.md" >"$work/readme"
while IFS= read -r line <&3; do
    count=$((count + 1))
    port=$(sed -nE 's/.* --listen 127\.0\.0\.1:([0-9]+).*/\1/p' <<<"$line")
    unbound=$(here "$(sed -E 's/ --listen [^ ]+//' <<<"$line")")
    case $line in
    # The workspace's tests are a step of their own.
    'cargo test --workspace') ;;
    'cargo run --release --bin quipu -- demo')
        serves 8545 '^listening on http:..(.*)$' 'quipu demo --listen 127.0.0.1:0'
        ;;
    'quipu serve '*)
        serves "${port:-8545}" '^listening on http:..(.*)$' "$unbound --listen 127.0.0.1:0"
        ;;
    'python3 -m http.server '*' 8000 &')
        serves 8000 '^Serving HTTP on 127.0.0.1 port ([0-9]+) .*$' \
            "$(sed -E 's/^python3/python3 -u/; s/ 8000 &$/ 0/' <<<"$line")"
        addresses[8000]=127.0.0.1:$address
        ;;
    *) exits 0 "README: $line" bash -c "$(here "$line")" ;;
    esac
    if grep -q '^curl .*"jsonrpc"' <<<"$line"; then
        says '"result":' "it has a result"
    fi
done 3<"$work/readme"
same "$(grep -c ' serve ' "$work/readme")" 3 "README starts three servers"
for _ in {1..600}; do
    tip=$(curl -s "${addresses[8546]}" -d '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}' \
        | json 'value["result"]')
    [ "$tip" != 0x257 ] || break
    sleep 0.1
done
same "$tip" 0x257 "the server that follows has the tip of the one that it follows"
cd "$root"
commands <"$root/docs/data-folder.md" >"$work/data-folder"
runs data-folder-commands <"$work/data-folder"
commands <"$root/docs/operations.md" >"$work/operations"
runs operations-commands <"$work/operations"
