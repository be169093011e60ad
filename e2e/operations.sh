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
    same "$("$quipu" stat --data-dir "$1" --json | json 'str(value["blocks"]) + " " + str(value["tip"]["number"])')" \
        "$(($2 + 1)) $2" "$1: it holds blocks 0 to $2"
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
starts restored '^listening on (http:.*)$' "$quipu" serve --data-dir restored --listen 127.0.0.1:0 \
    --upstream "$node"
ours=$address
catches_up "$node"
kill "$process"
wait "$process" || true
holds restored 8499

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

segments=(copy/blocks-*.segment)
first=$(basename "${segments[0]}")
last=$(basename "${segments[-1]}")

breaks "a segment is gone"
rm "broken/$last"
exits 1 "quipu doctor says that something must be done" "$quipu" doctor --data-dir broken
says "^FIX .*$last" "it names the file"
cp "copy/$last" broken
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
starts healed '^listening on (http:.*)$' "$quipu" serve --data-dir broken --listen 127.0.0.1:0 \
    --upstream "$node"
ours=$address
catches_up "$node"
kill "$process"
wait "$process" || true
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
