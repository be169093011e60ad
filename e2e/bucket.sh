#!/usr/bin/env bash
# A bucket in a folder, and nginx as a web server with it: three readers answer as the publisher's own folder
# does, by real clients and to the byte, while publishers, a reader and the web server are killed. In the end
# the bucket has the objects that one publication gives.

# shellcheck source=e2e/mirror.sh
source "$(dirname "${BASH_SOURCE[0]}")/mirror.sh"

clients=$work/clients
python=$target/e2e/clients/python/bin/python
kills=${QUIPU_KILLS:-5}
bucket=file://$work/buckets/large
# As it is, an import leaves the cores to whoever else wants them. Nothing here takes any time.
run=(nice -n 1 timeout 300 "$quipu")

# until_ok SECONDS COMMAND...: the command ends well within so long.
until_ok() {
    local until=$((SECONDS + $1))
    shift
    while ! "$@" >"$output" 2>&1; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.1
    done
}

# reads NAME SOURCE ARGUMENT...: a reader with a cache of its own; $address is where, $process what.
reads() {
    local name=$1 source=$2
    shift 2
    starts "$name" '^listening on (http:.*)$' "$quipu" serve --source "$source" --source-every 1s \
        --cache-dir "$work/cache-$name" --listen 127.0.0.1:0 "$@"
}

# has_tip URL NUMBER: its newest block is this one.
has_tip() {
    local body='{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
    [ "$(curl --silent --max-time 20 "$1" --data "$body" | json 'value["result"]')" = "$(printf '0x%x' "$2")" ]
}

# is_ready URL CODE: the server answers so when it is asked whether it is ready.
is_ready() {
    [ "$(curl --silent --max-time 20 --output /dev/null --write-out '%{http_code}' "$1/readyz")" = "$2" ]
}

configures "root $work/buckets;"
mkdir -p "$work/buckets"
starts_nginx

# --- what clients get

exits 0 "the clients are installed" "$root/e2e/install" clients "$target/e2e"
enters clients
# Every type of transaction, and one block before each fork and after it.
exits 0 "a chain is made" "$quipu" sample --to small --format ere --block-count 160 --txs-per-block 4 --seed 1
"$python" expected.py small/*.ere small/genesis.json >expected.json
ok "the expected answers are worked out"
exits 0 "it is imported" "${run[@]}" import --data-dir small-data --genesis small/genesis.json small
exits 0 "it is published" "${run[@]}" publish --data-dir small-data --to "file://$work/buckets/small"
reads small-file "file://$work/buckets/small"
urls=("$address")
reads small-pinned "file://$work/buckets/small" --pin all --cache-disk-bytes 0
urls+=("$address")
reads small-web "$mirror/small"
urls+=("$address")
for place in 0 1 2; do
    for client in "viem node viem.mjs" "ethers node ethers.mjs" "web3.py $python client_web3.py"; do
        read -r name program script <<<"$client"
        exits 0 "reader $((place + 1)) gives $name what the archive says" \
            "$program" "$script" "${urls[$place]}" expected.json
        says '^[0-9]{4,} values compared, 0 differ' "$name: $(tail -n 1 "$output")"
    done
done
cd "$work"

# --- publishers are killed

# Two slots of 8192 blocks that are complete, and a third one.
exits 0 "a larger chain is made" "$quipu" sample --to archives --block-count 17000 --txs-per-block 2
genesis=archives/genesis.json
for blocks in 0..8191 8192..16383 0..16999; do
    exits 0 "blocks $blocks are imported" "${run[@]}" import --data-dir "blocks-$blocks" --unanchored \
        --genesis "$genesis" --blocks "$blocks" archives
done
exits 0 "the whole is published at once" "${run[@]}" publish --data-dir blocks-0..16999 \
    --to "file://$work/buckets/expected"

exits 0 "the first slot is published" "${run[@]}" publish --data-dir blocks-0..8191 --to "$bucket"
reads file "$bucket"
file=$address file_process=$process
reads pinned "$bucket" --pin lookups
pinned=$address
reads web "$mirror/large"
web=$address
all=("$file" "$pinned" "$web")

# agrees BLOCKS WHAT: all readers answer as the folder with these blocks does.
agrees() {
    local reader
    for reader in "${all[@]}"; do
        exits 0 "$2: $reader answers as the folder does" \
            "${run[@]}" compare --data-dir "blocks-$1" --with "$reader" --sample 40
    done
}
agrees 0..8191 "the first slot"

# files: how many are in the bucket, whole or in part.
files() {
    find buckets/large/files -type f | wc -l
}

# Each is killed as soon as it has begun another object, and the next one goes on.
cut=0
for ((kill = 1; kill <= kills; kill++)); do
    before=$(files)
    "$quipu" publish --data-dir blocks-0..16999 --to "$bucket" >publish.log 2>&1 &
    publisher=$!
    for _ in {1..3000}; do
        [ "$(files)" -eq "$before" ] || break
        kill -0 "$publisher" 2>/dev/null || break
        sleep 0.01
    done
    # On a quick machine all may be there before the last kill: then there is nothing left to go on with.
    kill -KILL "$publisher" 2>/dev/null || break
    wait "$publisher" 2>/dev/null || true
    cut=$kill
    exits 0 "after kill $kill the bucket has what its manifests say" "${run[@]}" check --at "$bucket"
    agrees 0..8191 "after kill $kill"
done
echo "$cut of $kills publishers were killed before their end"
exits 0 "the second slot is published beside" "${run[@]}" publish --data-dir blocks-8192..16383 --to "$bucket"
exits 0 "the rest is published" "${run[@]}" publish --data-dir blocks-0..16999 --to "$bucket"
exits 0 "publishing again sends nothing" "${run[@]}" publish --data-dir blocks-0..16999 --to "$bucket"
says ': 0 files sent, 0 bytes, ' "and says so"
for reader in "${all[@]}"; do
    until_ok 60 has_tip "$reader" 16999 || not_ok "$reader does not show what was published"
done
agrees 0..16999 "all blocks"

# --- a reader is killed

kill -KILL "$file_process"
wait "$file_process" 2>/dev/null || true
reads file "$bucket"
all[0]=$address
agrees 0..16999 "a reader that was killed comes back with its cache"
kill -KILL "$process"
wait "$process" 2>/dev/null || true
rm -r cache-file
reads file "$bucket"
all[0]=$address
agrees 0..16999 "and without it"

# --- the web server goes away

kill -KILL "$nginx"
wait "$nginx" 2>/dev/null || true
# Only after a minute a reader may lack what somebody has published.
until_ok 120 is_ready "$web" 503 || not_ok "a reader whose source is away does not say that it is not ready"
body='{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
same "$(curl --silent --max-time 20 "$web" --data "$body" | json 'value["result"]')" 0x4267 \
    "it goes on answering"
starts_nginx
until_ok 60 is_ready "$web" 200 || not_ok "a reader whose source is back is not ready: $(curl --silent "$web/readyz")"
agrees 0..16999 "the web server is back"
exits 1 "a source that is not there ends a start" \
    timeout 60 "$quipu" serve --source http://127.0.0.1:1/ --cache-dir cache-none --listen 127.0.0.1:0
says '^ *hint: ' "with a hint"

# --- upkeep

exits 0 "runs are merged" "${run[@]}" merge --at "$bucket"
for time in first second; do
    exits 0 "what nothing lists is removed, the $time time" "${run[@]}" prune --at "$bucket" --older-than 0s
done
agrees 0..16999 "after pruning"
rm -rf buckets/large/orphans
# In a folder, what a killed publisher was writing stays under a name that no listing shows.
if diff -r --exclude '*#*' buckets/expected buckets/large >"$output"; then
    ok "the bucket has the objects of one publication, to the byte"
else
    not_ok "the bucket differs from one publication:"
    cat "$output" >&2
fi

# --- a data folder is filled from the bucket

# As an import of the same blocks, whatever was published by whom: manifest, segments and runs.
equals_import() {
    if diff -r --exclude lock --exclude journal --exclude genesis.json blocks-0..16999 "$1" >"$output"; then
        ok "$2 gives the folder of an import, to the byte"
    else
        not_ok "$2 gives another folder than an import:"
        cat "$output" >&2
    fi
}
fetch=(fetch --genesis "$genesis" --from "$mirror/large")
"$quipu" "${fetch[@]}" --data-dir fetched >fetch.log 2>&1 &
fetching=$!
# Killed when its first slot is held, or the first file is on its way.
for _ in {1..3000}; do
    [ ! -e fetched/fetch/segments ] && [ ! -e fetched/manifest ] || break
    kill -0 "$fetching" 2>/dev/null || break
    sleep 0.01
done
kill -KILL "$fetching" 2>/dev/null || true
wait "$fetching" 2>/dev/null || true
exits 0 "a fetch that was killed goes on" "${run[@]}" "${fetch[@]}" --data-dir fetched
equals_import fetched "a proven fetch"
