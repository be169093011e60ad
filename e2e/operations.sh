#!/usr/bin/env bash
# What docs/operations.md tells an operator to do: a backup of a folder that is written to, its restoration,
# and recovery from each fault of a data folder.

# shellcheck source=e2e/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"
cd "$work"

export QUIPU=$quipu
backup=$root/packaging/quipu-backup

imports() {
    exits 0 "blocks $2 are imported" "$quipu" import --data-dir "$1" --blocks "$2" \
        --genesis archives/genesis.json archives
}

# holds FOLDER LAST: all blocks up to this one, each proven.
holds() {
    exits 0 "$1: quipu check passes" "$quipu" check --data-dir "$1"
    same "$(tells "$1")" "$(($2 + 1)) $2" "$1: it holds blocks 0 to $2"
}

# follows_on FOLDER NODE: the folder gets what the node has, and is left alone after that.
follows_on() {
    starts "serve-$1" '^listening on (http:.*)$' "$quipu" serve --data-dir "$1" --listen 127.0.0.1:0 \
        --upstream "$2"
    ours=$address
    catches_up "$2"
    stops
}

# tells FOLDER: how many blocks there are, and the newest.
tells() {
    "$quipu" stat --data-dir "$1" --json | json 'str(value["blocks"]) + " " + str(value["tip"]["number"])'
}

exits 0 "a chain is made" "$quipu" sample --to archives --block-count 8500 --txs-per-block 2

# --- backup while another process writes

# The slot of 8192 blocks is in pieces, which an import replaces by one file while they are copied.
imports data 0..8000
mkdir bin
cat >bin/cp <<CP
#!/usr/bin/env bash
if [[ \$* == *.segment* ]] && mkdir "$work/superseded" 2>/dev/null; then
    "$quipu" import --quiet --data-dir "$work/data" "$work/archives" >"$work/import.log" 2>&1
fi
exec $(command -v cp) "\$@"
CP
chmod +x bin/cp
exits 0 "a backup ends well although an import supersedes files meanwhile" \
    env PATH="$work/bin:$PATH" "$backup" data copy
says 'cannot stat .*segment' "a file was gone when its turn came"
says ' listed files .* all there$' "quipu doctor finds every file"
holds copy 8499
same "$(cmp data/manifest copy/manifest && echo same)" same "the copy has the folder's manifest"
same "$(cd copy && ls)" "$(cd data && ls --ignore=lock)" "the copy has the folder's files and no other"

# Beside a follower, again and again into one copy; now and then a backup is killed.
starts node '^listening on (http:.*)$' "$quipu" serve --data-dir data --listen 127.0.0.1:0
node=$address
imports followed 0..7900
cp -r followed earlier
starts follower '^listening on (http:.*)$' "$quipu" serve --data-dir followed --listen 127.0.0.1:0 \
    --upstream "$node"
ours=$address follower=$process
for round in 1 2 3 4 5 6; do
    "$backup" followed beside >killed.log 2>&1 &
    killed=$!
    sleep "0.$round"
    kill -KILL "$killed" 2>/dev/null || true
    wait "$killed" 2>/dev/null || true
    exits 0 "backup $round beside a follower" "$backup" followed beside
    exits 0 "backup $round: quipu check passes" "$quipu" check --data-dir beside
done
catches_up "$node"
exits 0 "a backup of a folder with a head" "$backup" followed beside
holds beside 8499
kill "$follower"
wait "$follower" || true

# Restored, it is served and followed on.
cp -r beside restored
follows_on restored "$node"
holds restored 8499

# Killed before each step of its end, where the copy becomes another one: the copy can be read, and the
# next backup goes on. Between the two folders blocks were sealed, and the head has another log.
imports shorter 0..8200
starts shorter '^listening on (http:.*)$' "$quipu" serve --data-dir shorter --listen 127.0.0.1:0
shorter=$process
follows_on earlier "$address"
kill "$shorter"
wait "$shorter" || true
cp -r earlier later
follows_on later "$node"
mkdir kills
for program in mv rm; do
    cat >"kills/$program" <<KILL
#!/usr/bin/env bash
if [[ "$program \$*" =~ \$KILL_BEFORE ]]; then
    kill -KILL "\$PPID"
    exit 1
fi
exec $(command -v "$program") "\$@"
KILL
    chmod +x "kills/$program"
done
# After the second the old manifest has the new log, and the blocks between are in neither.
while read -r step expected; do
    rm -rf killed
    exits 0 "a backup of the earlier folder" "$backup" earlier killed
    exits 137 "the next one is killed before $step" \
        env KILL_BEFORE="$step" PATH="$work/kills:$PATH" "$backup" later killed
    exits 0 "the copy can be read" "$quipu" stat --data-dir killed
    [ -z "$expected" ] || same "$(tells killed)" "$expected" "it holds $expected"
    exits 0 "the backup after it goes on" "$backup" later killed
    same "$(tells killed)" "8500 8499" "and has all blocks"
    same "$(cd killed && ls)" "$(cd later && ls --ignore=lock --ignore='*.part')" "and no file too many"
done <<'STEPS'
^mv.*/head-[0-9]+\.log$ 8201 8200
^mv.*/manifest$
^rm.*/head-[0-9]+\.log$ 8500 8499
^rm.*\.run$ 8500 8499
STEPS

# Writing fails, as on a disk that is full, and is not tried again.
exits 1 "a backup that there is no room for fails" \
    bash -c 'trap "" XFSZ; ulimit -f 1000; exec "$@"' - "$backup" data full
same "$(grep -c 'File too large' "$output")" 1 "it says why, once"
same "$(ls full)" "" "it leaves nothing behind"

# As many files as a folder of mainnet has, all of them in the copy already, and one that is not of it.
mkdir many
for ((slot = 0; slot < 3000; slot++)); do
    name=$(printf 'blocks-%010d-%010d-%016x.segment' $((slot * 8192)) $((slot * 8192 + 8191)) "$slot")
    echo "segment $((slot * 8192)) $((slot * 8192 + 8191)) $name 0"
    : >"many/$name"
done >many/manifest
cp -r many mostly
touch mostly/blocks-superseded.segment
exits 0 "a backup of 3,000 listed files that are there" env QUIPU=true "$backup" many mostly
same "$(diff <(ls many) <(ls mostly) | head -n 3)" "" "it removes the file that is not listed and no other"

# --- recovery

# breaks NAME: a copy of the folder to break.
breaks() {
    rm -rf broken
    cp -r copy broken
    echo "- $1"
}

# heals: all is there again, and doctor has nothing to do.
heals() {
    exits 0 "quipu doctor finds nothing to do" "$quipu" doctor --data-dir broken
    holds broken 8499
}

# serves_broken: a server of the folder, at $address.
serves_broken() {
    starts serve-broken '^listening on (http:.*)$' "$quipu" serve --data-dir broken --listen 127.0.0.1:0
}

segments=(copy/blocks-*.segment)
first=$(basename "${segments[0]}")
last=$(basename "${segments[-1]}")

breaks "a segment is gone"
rm "broken/$last"
exits 1 "quipu doctor says that something must be done" "$quipu" doctor --data-dir broken
says "^FIX .*$last" "it names the file"
serves_broken
exits 22 "the server is not ready" curl --silent --fail-with-body "$address/readyz"
says "$last" "it names the file"
cp "copy/$last" broken
exits 0 "the copy is taken up beside the server" curl --silent --fail --retry 100 --retry-delay 1 \
    --retry-max-time 60 "$address/readyz"
stops
heals

breaks "a segment is gone, and there is no copy of it"
rm "broken/$last"
exits 1 "quipu repair tells what is lost" "$quipu" repair --data-dir broken
says '8448' "by its blocks"
exits 0 "the archives bring them back" "$quipu" import --data-dir broken archives
heals

breaks "bytes of a segment are wrong"
python3 - "broken/$first" <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(5000)
    byte = file.read(1)[0]
    file.seek(5000)
    file.write(bytes([byte ^ 1]))
PYTHON
exits 1 "quipu check finds it" "$quipu" check --data-dir broken
says "$first" "it names the file"
rm "broken/$first"
exits 1 "without that file quipu repair keeps the rest" "$quipu" repair --data-dir broken
exits 0 "the archives bring its blocks back" "$quipu" import --data-dir broken archives
heals

breaks "a lookup run is gone"
rm broken/lookup-transactions-*.run
exits 1 "quipu doctor says that something must be done" "$quipu" doctor --data-dir broken
exits 0 "quipu repair builds it again" "$quipu" repair --data-dir broken
heals

breaks "the log index is gone"
rm broken/lookup-logs-*.run
exits 1 "quipu doctor says that something must be done" "$quipu" doctor --data-dir broken
exits 0 "quipu index builds it again" "$quipu" index --data-dir broken
exits 0 "quipu repair has nothing left to do" "$quipu" repair --data-dir broken
heals

echo "- blocks have no log index"
rm -rf broken
exits 0 "blocks are imported without one" "$quipu" import --data-dir broken --without-log-index \
    --genesis archives/genesis.json archives
exits 0 "quipu stat" "$quipu" stat --data-dir broken
says '^no log index of blocks 0\.\.8499' "it names the blocks"
serves_broken
exits 0 "quipu index builds it, beside the server" "$quipu" index --data-dir broken
stops
exits 0 "quipu stat" "$quipu" stat --data-dir broken
same "$(grep -c '^no log index' "$output")" 0 "no block is without one"
heals

breaks "the manifest is gone"
rm broken/manifest
exits 1 "quipu stat refuses the folder" "$quipu" stat --data-dir broken
exits 0 "quipu repair writes it again" "$quipu" repair --data-dir broken --name sample
heals

breaks "genesis.json is gone"
rm broken/genesis.json
exits 1 "quipu stat refuses the folder" "$quipu" stat --data-dir broken
exits 0 "quipu repair takes it again" "$quipu" repair --data-dir broken --genesis archives/genesis.json
heals

echo "- the head's log is gone"
rm -rf broken
cp -r beside broken
rm broken/head-*.log
exits 1 "quipu stat refuses the folder" "$quipu" stat --data-dir broken
"$quipu" repair --data-dir broken >"$output" 2>&1 || true
says 'head' "quipu repair accepts the loss"
follows_on broken "$node"
heals

breaks "a process was killed while it wrote"
echo "12345 import" >broken/lock
touch broken/blocks-0000008448-0000008703.part
heals

breaks "blocks that turn out to be false"
block=$("$quipu" export --data-dir broken --format ndjson --to json --blocks 8300..8300 >/dev/null &&
    json 'str(value["number"]) + ":" + value["hash"]' <json/*.ndjson)
exits 0 "quipu rewind drops what is above the last true block" "$quipu" rewind --data-dir broken --to "$block"
exits 0 "the archives bring the true ones" "$quipu" import --data-dir broken archives
heals
