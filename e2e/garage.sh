#!/usr/bin/env bash
# History in a real distributed store: Garage, three nodes on loopback, each object on all of them. One
# process publishes, three readers answer under load; a node of the store, a reader, and a publisher in the
# middle of its upload are killed, and every answer is held against that of a local server. Two folders that
# were filled separately end in the same objects, to the byte. Numbers are printed.
#
# Its tools: target/tools has Garage, which takes some eight minutes of two cores to build once. With
# QUIPU_E2E_BUCKET=file:///folder that bucket takes the store's place, and no node is killed.
# The moments are those of QUIPU_SEED; QUIPU_KILLS is how often a publisher is killed (5 unless told).

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"
cd "$work"

garage_version=2.5.0
garage=$root/target/tools/garage/bin/garage
kills=${QUIPU_KILLS:-5}
seed=${QUIPU_SEED:-$RANDOM}
RANDOM=$seed
echo "QUIPU_SEED=$seed QUIPU_KILLS=$kills"

# Blocks that are published first, and all. Segments are larger than what a publisher sends as one part.
blocks_first=9000
blocks=17000
# As it is, an import leaves the cores to whoever else wants them. Nothing here takes any time.
run=(nice -n 1 timeout 300 "$quipu")

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# until_ok SECONDS COMMAND...: the command ends well within so long.
until_ok() {
    local until=$((SECONDS + $1))
    shift
    while ! "$@" >"$output" 2>&1; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.2
    done
}

# --- the store

installs_garage() {
    if [ "$("$garage" --version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)" != "$garage_version" ]; then
        echo "building garage $garage_version into target/tools"
        cargo install garage --version "$garage_version" --locked --quiet --root "$root/target/tools/garage"
    fi
}

# node NUMBER COMMAND...: a command of Garage, asked of this node.
node() {
    local number=$1
    shift
    timeout 60 "$garage" --config "$work/node-$number/garage.toml" "$@" 2>"$work/node-$number/said"
}

# starts_node NUMBER: its process is in nodes[NUMBER].
starts_node() {
    "$garage" --config "$work/node-$1/garage.toml" server >>"$work/node-$1/log" 2>&1 &
    nodes[$1]=$!
}

# starts_garage: endpoints[1] to [3] are its addresses, and the variables of S3 name a key and the region.
starts_garage() {
    local number secret
    secret=$(python3 -c 'import secrets; print(secrets.token_hex(32))')
    for number in 1 2 3; do
        local s3 rpc
        s3=$(free_port) rpc=$(free_port)
        endpoints[number]=http://127.0.0.1:$s3
        mkdir -p "node-$number"
        # No sync: what a machine loses with its power is not what is tested.
        cat >"node-$number/garage.toml" <<TOML
metadata_dir = "$work/node-$number/meta"
data_dir = "$work/node-$number/data"
db_engine = "sqlite"
replication_factor = 3
rpc_bind_addr = "127.0.0.1:$rpc"
rpc_public_addr = "127.0.0.1:$rpc"
rpc_secret = "$secret"

[s3_api]
api_bind_addr = "127.0.0.1:$s3"
s3_region = "garage"
TOML
        starts_node "$number"
    done
    for number in 1 2 3; do
        until_ok 60 node "$number" status || { cat "node-$number/log" >&2 && return 1; }
        ids[number]=$(node "$number" node id --quiet)
    done
    node 1 node connect "${ids[2]}" >"$output"
    node 1 node connect "${ids[3]}" >"$output"
    for number in 1 2 3; do
        until_ok 60 node 1 layout assign "${ids[number]%%@*}" --zone "rack$number" --capacity 10GB
    done
    node 1 layout apply --version 1 >"$output"
    # The nodes have to see each other and the layout before they agree on anything.
    until_ok 60 node 1 bucket create quipu
    node 1 key create quipu >"$output"
    node 1 bucket allow --read --write --owner quipu --key quipu >"$output"
    AWS_ACCESS_KEY_ID=$(node 1 key info quipu --key-id)
    AWS_SECRET_ACCESS_KEY=$(node 1 key info quipu --secret-key)
    export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION=garage AWS_ALLOW_HTTP=true
    export AWS_ENDPOINT_URL=${endpoints[1]}
}

# objects.py ADDRESS PREFIX: the SHA-256 and the name of every object below it. It signs requests itself
# (AWS Signature Version 4): curl does it in ways that differ between its versions.
cat >objects.py <<'PYTHON'
import hashlib, hmac, os, re, sys, time, urllib.parse, urllib.request
address, prefix = sys.argv[1:]
key, secret, region = (os.environ[f"AWS_{name}"] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION"))
host, empty = urllib.parse.urlsplit(address).netloc, hashlib.sha256().hexdigest()

def get(path, query=""):
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    headers = {"host": host, "x-amz-content-sha256": empty, "x-amz-date": now}
    lines, names = "".join(f"{name}:{value}\n" for name, value in headers.items()), ";".join(headers)
    asked = hashlib.sha256("\n".join(("GET", path, query, lines, names, empty)).encode()).hexdigest()
    scope = (now[:8], region, "s3", "aws4_request")
    signature = f"AWS4{secret}".encode()
    for part in (*scope, "\n".join(("AWS4-HMAC-SHA256", now, "/".join(scope), asked))):
        signature = hmac.digest(signature, part.encode(), "sha256")
    headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={key}/{'/'.join(scope)}, "
                                f"SignedHeaders={names}, Signature={signature.hex()}")
    asked = urllib.request.Request(f"{address}{path}?{query}", headers=headers)
    return urllib.request.urlopen(asked, timeout=60).read()

# A page of a listing has a thousand names, and there are a hundred.
query = f"list-type=2&prefix={urllib.parse.quote(prefix + '/', safe='')}"
for name in re.findall("<Key>([^<]*)", get("/quipu", query).decode()):
    print(hashlib.sha256(get(f"/quipu/{name}")).hexdigest(), name.removeprefix(prefix + "/"))
PYTHON

# objects PREFIX: the SHA-256 and the name of every object below it.
objects() {
    if [ "$store_runs" = yes ]; then
        python3 objects.py "${endpoints[1]}" "$1"
    else
        # What is being written has a number behind its name, and is no object.
        (cd "${bucket#file://}/$1" && find . -type f ! -name '*#*' -printf '%P\0' |
            xargs --null --no-run-if-empty sha256sum) | sed 's/  / /'
    fi
}

declare -a nodes endpoints ids
if [ -n "${QUIPU_E2E_BUCKET:-}" ]; then
    bucket=${QUIPU_E2E_BUCKET%/}/$(basename "$work")
    store_runs=no
    mkdir -p "${bucket#file://}"
else
    exits 0 "Garage $garage_version is there" installs_garage
    started=$SECONDS
    starts_garage
    ok "three nodes of Garage make a store, after $((SECONDS - started)) s"
    bucket=s3://quipu
    store_runs=yes
fi

# --- what is published

exits 0 "a chain is made" \
    "${run[@]}" sample --to archives --block-count "$blocks" --txs-per-block 12 --payload mainnet
genesis=archives/genesis.json
exits 0 "its beginning is imported" "${run[@]}" import --data-dir one --genesis "$genesis" \
    --blocks "0..$((blocks_first - 1))" archives
exits 0 "all of it is imported into another folder" \
    "${run[@]}" import --data-dir two --genesis "$genesis" archives

# publishes WHAT FOLDER PREFIX: and tells how long it takes.
publishes() {
    local started
    started=$(date +%s%N)
    exits 0 "$1" "${run[@]}" publish --data-dir "$2" --to "$bucket/$3"
    publish_ms=$((($(date +%s%N) - started) / 1000000))
    echo "$(tail -n 1 "$output"): $publish_ms ms"
}
publishes "the beginning is published" one a
says '^.*: [1-9][0-9]* files sent, ' "files are sent"
exits 0 "the bucket has what its manifest says" "${run[@]}" check --at "$bucket/a"

# --- questions, and readers

# ask.py FILE: questions with the answers of the first server, or many of them asked of all servers.
cat >ask.py <<'PYTHON'
import http.client, json, random, sys, threading, time, urllib.parse

def connect(url):
    return http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=30)

def post(connection, body):
    connection.request("POST", "/", body, {"content-type": "application/json"})
    return connection.getresponse().read()

def collect(url, last, count, seed):
    """Prints a question and its answer a line: about blocks, transactions, receipts and logs."""
    connection, chance = connect(url), random.Random(int(seed))
    def ask(method, *params):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = post(connection, body).decode()
        print(json.dumps([body, answer]))
        return json.loads(answer)["result"]
    for _ in range(int(count)):
        number = hex(chance.randint(1, int(last)))
        block = ask("eth_getBlockByNumber", number, True)
        ask("eth_getBlockByHash", block["hash"], False)
        ask("eth_getTransactionByHash", "0x" + chance.randbytes(32).hex())
        for transaction in chance.sample(block["transactions"], min(4, len(block["transactions"]))):
            ask("eth_getTransactionByHash", transaction["hash"])
            logs = ask("eth_getTransactionReceipt", transaction["hash"])["logs"]
        for log in logs[:1]:
            # Sparse values only: their answers over all blocks are short.
            ask("eth_getLogs", {"fromBlock": "0x0", "toBlock": hex(int(last)),
                                "address": log["address"], "topics": log["topics"]})

def load(path, seconds, threads, *urls):
    """Asks questions again and again, and prints what came of it by server."""
    questions = [json.loads(line) for line in open(path)]
    until = time.monotonic() + float(seconds)
    tallies = {url: {"answers": 0, "errors": 0, "unreachable": 0, "wrong": 0} for url in urls}
    times, lock = [], threading.Lock()
    def ask_on(url, seed):
        chance, connection, own, tally = random.Random(seed), None, [], dict.fromkeys(tallies[url], 0)
        while time.monotonic() < until:
            body, expected = chance.choice(questions)
            begun = time.monotonic()
            try:
                connection = connection or connect(url)
                answer = post(connection, body).decode()
            except (OSError, http.client.HTTPException):
                # A new one for the next question.
                connection = None
                tally["unreachable"] += 1
                time.sleep(0.05)
                continue
            own.append(time.monotonic() - begun)
            if answer == expected:
                tally["answers"] += 1
            elif json.loads(answer).get("error", {}).get("code") == -32603:
                tally["errors"] += 1
            else:
                tally["wrong"] += 1
                print(body, answer[:300], expected[:300], file=sys.stderr)
        with lock:
            times.extend(own)
            for key, count in tally.items():
                tallies[url][key] += count
    asking = [threading.Thread(target=ask_on, args=(url, seed))
              for seed, url in enumerate(urls * int(threads))]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    times.sort()
    place = lambda share: round(times[int(share * (len(times) - 1))] * 1000, 2) if times else None
    total = {key: sum(tally[key] for tally in tallies.values()) for key in next(iter(tallies.values()))}
    print(json.dumps({**total, "rate": round(total["answers"] / float(seconds)), "p50_ms": place(0.5),
                      "p99_ms": place(0.99), "servers": list(tallies.values())}))

{"collect": collect, "load": load}[sys.argv[1]](*sys.argv[2:])
PYTHON

# asks_for SECONDS WHAT URL...: what came of it is in $work/outcome, and printed.
asks_for() {
    local seconds=$1 what=$2
    shift 2
    if ! timeout $((seconds + 90)) python3 ask.py load questions "$seconds" 4 "$@" >outcome 2>wrong; then
        not_ok "$what: no questions are asked: $(tail -n 1 wrong)"
        return
    fi
    echo "$what: $(json '", ".join(f"{key} {item}" for key, item in value.items() if key != "servers")' <outcome)"
}

# counted EXPRESSION: of what came of the last load.
counted() {
    json "$1" <outcome
}

# all_right WHAT SERVER...: nothing is wrong, and each of these servers answers and gives no error.
all_right() {
    local what=$1 server
    shift
    same "$(counted 'value["wrong"]')" 0 "$what: every answer is the local server's"
    for server; do
        same "$(counted "value['servers'][$server - 1]['errors'] + value['servers'][$server - 1]['unreachable']")" 0 \
            "$what: reader $server gives no error"
        same "$(counted "value['servers'][$server - 1]['answers'] > 0")" True "$what: and answers"
    done
}

# starts_reader NUMBER: readers[NUMBER] is where, processes[NUMBER] what; each asks a node of its own.
declare -a readers processes
starts_reader() {
    local endpoint=${endpoints[$1]:-}
    starts "reader-$1" '^listening on (http:.*)$' env ${endpoint:+"AWS_ENDPOINT_URL=$endpoint"} "$quipu" serve \
        --source "$bucket/a" --cache-dir "$work/cache-$1" --source-every 1s --listen 127.0.0.1:0
    readers[$1]=$address processes[$1]=$process
}

# tip_of URL: the number of its newest block, in hex.
tip_of() {
    curl --silent --max-time 20 "$1" --data '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}' |
        json 'value["result"]'
}

# has_tip URL NUMBER
has_tip() {
    [ "$(tip_of "$1")" = "$2" ]
}

starts local '^listening on (http:.*)$' "$quipu" serve --data-dir one --listen 127.0.0.1:0
local_server=$address local_process=$process
exits 0 "questions are collected" python3 ask.py collect "$local_server" $((blocks_first - 1)) 60 "$seed"
cp "$output" questions
asks_for 4 "local server" "$local_server"
all_right "local server" 1

for number in 1 2 3; do
    starts_reader "$number"
done
# One question of a reader that has read nothing yet.
head -n 4 questions | tail -n 1 >question
begun=$(date +%s%N)
answer=$(curl --silent --max-time 30 "${readers[3]}" --data "$(json 'value[0]' <question)")
echo "first answer by hash, cold: $((($(date +%s%N) - begun) / 1000000)) ms, requests $(
    curl --silent "${readers[3]}/stat.json" | json 'value["source"]["requests"]')"
same "$answer" "$(json 'value[1]' <question)" "the first answer of a cold reader is the local server's"
all=("${readers[1]}" "${readers[2]}" "${readers[3]}")
for number in 1 2 3; do
    exits 0 "reader $number answers the six reads as the folder does" \
        "${run[@]}" compare --data-dir one --with "${readers[$number]}" --sample 40 --seed "$seed"
done
asks_for 6 "three readers" "${all[@]}"
all_right "three readers" 1 2 3

# --- a node of the store is killed

if [ "$store_runs" = yes ]; then
    asks_for 12 "three readers, a node of the store is killed" "${all[@]}" &
    asking=$!
    sleep 3
    kill -KILL "${nodes[3]}"
    wait "${nodes[3]}" 2>/dev/null || true
    wait "$asking"
    all_right "without a node" 1 2
    # The third reader has lost the node that it asks: it answers what it has, and says so of the rest.
    asks_for 4 "a reader whose node is away" "${readers[3]}"
    same "$(counted 'value["wrong"]')" 0 "a reader whose node is away: nothing is wrong"
    same "$(counted 'value["answers"] > 0')" True "it answers what it has cached"
    # One that has nothing yet gets all of it from the nodes that are left.
    endpoints[4]=${endpoints[2]}
    starts_reader 4
    asks_for 5 "a cold reader, and a store without a node" "${readers[4]}"
    all_right "a cold reader, and a store without a node" 1
    rm -r cache-4
    asks_for 3 "a reader whose cache folder is gone" "${readers[4]}"
    all_right "a reader whose cache folder is gone" 1
    starts_node 3
    until_ok 60 node 3 status || not_ok "the node does not come back"
    asks_for 5 "three readers, the node is back" "${all[@]}"
    all_right "with all nodes" 1 2
    same "$(counted 'value["wrong"]')" 0 "and nothing is wrong"
fi

# --- a reader is killed

asks_for 8 "three readers, one is killed" "${all[@]}" &
asking=$!
sleep 2
kill -KILL "${processes[1]}"
wait "${processes[1]}" 2>/dev/null || true
wait "$asking"
all_right "when a reader is killed" 2 3
starts_reader 1
asks_for 4 "the same reader, with the cache that it had" "${readers[1]}"
all_right "a reader that comes back" 1
echo "its requests: $(curl --silent "${readers[1]}/stat.json" | json 'value["source"]["requests"]')"
all=("${readers[1]}" "${readers[2]}" "${readers[3]}")

# --- publishers are killed

# reaches PROCESS BYTES: it has read so many from files, or has ended, or ten seconds have passed.
reaches() {
    local _ bytes
    for _ in {1..2000}; do
        read -r _ bytes 2>/dev/null <"/proc/$1/io" && [ "$bytes" -lt "$2" ] || break
        sleep 0.005
    done
}

exits 0 "the rest is imported" "${run[@]}" import --data-dir one --genesis "$genesis" archives
publishes "the other folder is published elsewhere" two b
asks_for $((8 + kills * (publish_ms / 1000 + 1))) "three readers, publishers are killed" "${all[@]}" &
asking=$!
cut=0
for ((kill = 1; kill <= kills; kill++)); do
    "$quipu" publish --data-dir one --to "$bucket/a" >"publish-$kill.log" 2>&1 &
    publisher=$!
    # When it has read so much of the folder, it has sent about as much: each time more.
    reaches "$publisher" $((1000000 + RANDOM * 2000 * kill / kills))
    ! kill -KILL "$publisher" 2>/dev/null || cut=$((cut + 1))
    wait "$publisher" 2>/dev/null || true
    exits 0 "after kill $kill the bucket has what its manifests say" "${run[@]}" check --at "$bucket/a"
done
same "$([ "$cut" -gt 0 ] && echo some)" some "publishers are killed before their end, $cut of $kills"
publishes "the rest is published" one a
wait "$asking"
all_right "while publishers are killed" 1 2 3
tip=$(printf '0x%x' $((blocks - 1)))
for number in 1 2 3; do
    until_ok 20 has_tip "${readers[$number]}" "$tip" || true
    same "$(tip_of "${readers[$number]}")" "$tip" "reader $number has what was published since"
done
# The local server sees an import beside it; questions are about all blocks from here on.
until_ok 20 has_tip "$local_server" "$tip" || not_ok "the local server does not see the import"
exits 0 "questions about all blocks are collected" python3 ask.py collect "$local_server" $((blocks - 1)) 60 "$seed"
cp "$output" questions
asks_for 6 "three readers, all blocks" "${all[@]}"
all_right "all blocks" 1 2 3

# --- two publishers, the same bytes

publishes "the other folder is published beside" two a
says ': 0 files sent, 0 bytes, ' "nothing is sent: all of it is there"
objects b >objects.b
objects a >objects.a
# The index names manifests that were superseded, too.
grep -v ' manifests/index$' objects.b >expected
same "$(LC_ALL=C sort objects.a | LC_ALL=C comm -13 - <(LC_ALL=C sort expected) | wc -l)" 0 \
    "all $(wc -l <expected) objects of the second publisher are the first one's, to the byte"
# What is superseded is noted by the first run, and removed by the second.
for time in first second; do
    exits 0 "prune removes what is superseded, the $time time" "${run[@]}" prune --at "$bucket/a" --older-than 0s
    sleep 1.1
done
objects a >objects.a
same "$(sort objects.a)" "$(sort objects.b)" "after that the two have the same objects, to the byte"
exits 0 "the bucket has what its manifest says" "${run[@]}" check --at "$bucket/a"
tail -n 1 "$output"
asks_for 4 "three readers, after pruning" "${all[@]}"
all_right "after pruning" 1 2 3
exits 0 "the published history is told" "${run[@]}" stat --at "$bucket/a" --json
same "$(json 'value["coverage"][-1]["last"], value["set_aside"]' <"$output")" "$((blocks - 1)) []" \
    "it is all that was imported"

# Nodes and readers end here rather than by the trap: a store that loses its nodes one by one waits for them.
for process in "${processes[@]}" "$local_process" "${nodes[@]}"; do
    kill -KILL "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
done
[ "$store_runs" = yes ] || rm -r "${bucket#file://}"
