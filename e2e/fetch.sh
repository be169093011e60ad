#!/usr/bin/env bash
# Archives from a real web server, with kills of both sides, a slow mirror and one that lies: in the end
# the data folder is that of an import of local files, to the byte. The moments are those of QUIPU_SEED.

# shellcheck source=e2e/mirror.sh
source "$(dirname "${BASH_SOURCE[0]}")/mirror.sh"
cd "$work"

kills=${QUIPU_FETCH_KILLS:-6}
seed=${QUIPU_SEED:-$RANDOM}
RANDOM=$seed
echo "QUIPU_SEED=$seed QUIPU_FETCH_KILLS=$kills"

# As it is, a fetch leaves the cores to whoever else wants them: on a busy machine it would take any time.
run=(nice -n 1 timeout 120 "$quipu")

exits 0 "a chain of two archives is made" \
    "$quipu" sample --to archives --block-count 8700 --txs-per-block 1
genesis=archives/genesis.json
exits 0 "it is imported from local files" \
    "${run[@]}" import --data-dir local --genesis "$genesis" archives

# A mirror whose second file is damaged, and whose list says that it must be so.
cp -r archives lying
python3 - lying/sample-00001-*.ere <<'PYTHON'
import sys

with open(sys.argv[1], "r+b") as file:
    file.seek(file.seek(0, 2) // 2)
    byte = file.read(1)
    file.seek(-1, 1)
    file.write(bytes([byte[0] ^ 1]))
PYTHON
(cd lying && sha256sum -- *.ere >checksums_sha256.txt && rm checksums.txt)
# One that has addresses instead of checksums, one that has neither, and one that lacks a file.
mkdir urls none lacking
cp archives/*.ere urls && (cd urls && ls -- *.ere >urls.txt)
cp archives/*.ere none
cp archives/* lacking && rm lacking/sample-00001-*.ere

configures "
    root $work;
    location /none/ { autoindex on; }
    location /slow/ { alias $work/archives/; limit_rate 20k; }
    location /steady/ { alias $work/archives/; limit_rate 2m; }
"
starts_nginx

# fetches CODE WHAT FOLDER MIRRORS [FLAG...]
fetches() {
    exits "$1" "$2" "${run[@]}" fetch --data-dir "$3" --genesis "$genesis" --from "$4" "${@:5}"
}

# equals FOLDER WHAT: it holds the same files as the import of local files, and nothing else.
equals() {
    if diff -rq --exclude lock local "$1" >"$output" 2>&1; then
        ok "$2: the folder is that of an import of local files, to the byte"
    else
        not_ok "$2: the folders differ:"
        cat "$output" >&2
    fi
}

# asked PATTERN: how many lines of the access log match.
asked() {
    grep --count --extended-regexp -e "$1" "$access" || true
}

# begins PROCESS FOLDER: waits until a part is on disk, 30 s at the most and not beyond the process.
begins() {
    for _ in {1..1500}; do
        ! compgen -G "$2/fetch/*.part" >/dev/null || return 0
        kill -0 "$1" 2>/dev/null || return 1
        sleep 0.02
    done
    return 1
}

fetches 0 "archives are fetched from nginx" plain "$mirror/archives"
says '^2 files imported: 8700 blocks' "all blocks are taken"
equals plain "a fetch"
: >"$access"
fetches 0 "a second fetch" plain "$mirror/archives"
says '2 files held already' "it says that all is held"
same "$(asked '"GET [^"]*\.ere ')" 0 "it downloads nothing"

fetches 0 "a mirror with urls.txt alone" by-urls "$mirror/urls/"
equals by-urls "a fetch with urls.txt alone"

: >"$access"
killed=0
while [ "$killed" -lt "$kills" ]; do
    nice -n 1 "$quipu" fetch --data-dir killed --genesis "$genesis" --from "$mirror/steady" >fetch.log 2>&1 &
    process=$!
    # It may be done already: then there is nothing left to kill.
    begins "$process" killed || true
    sleep "0.$((RANDOM % 8 + 1))"
    kill -KILL "$process" 2>/dev/null || break
    wait "$process" 2>/dev/null || true
    killed=$((killed + 1))
    if [ -e killed/manifest ]; then
        exits 0 "kill $killed (seed $seed): quipu check passes" "$quipu" check --data-dir killed
    fi
done
fetches 0 "after $killed kills (seed $seed) the same command ends well" killed "$mirror/steady"
equals killed "after $killed kills"
[ "$(asked '\.ere [^"]*" 206')" -gt 0 ] && ok "downloads went on where they ended" ||
    not_ok "no download went on where it ended"

# The server goes away in the middle and comes back.
"${run[@]}" fetch --data-dir gone --genesis "$genesis" --from "$mirror/steady" >fetch.log 2>&1 &
process=$!
begins "$process" gone || not_ok "no download has begun before the mirror goes away"
kill -KILL "$nginx"
wait "$nginx" 2>/dev/null || true
# Long enough that a try comes in between.
sleep 0.5
starts_nginx
wait "$process" && found=0 || found=$?
same "$found" 0 "a mirror that goes away and comes back is waited for"
cp fetch.log "$output"
says '^warning: mirror .*: sample-0000' "its failure is told"
equals gone "a mirror that went away"

fetches 0 "beside a mirror that lies, another one does" lying-first "$mirror/lying,$mirror/archives"
says 'warning: mirror .*/lying/: sample-00001-.*other mirrors come first' "the one that lies is named"
equals lying-first "beside a mirror that lies"
fetches 1 "from a mirror that lies alone" lying-alone "$mirror/lying"
says 'error: sample-00001-.*: no mirror gives one that can be taken' "the file is named"
exits 0 "what was true is held" "$quipu" check --data-dir lying-alone
fetches 0 "the next run takes the rest from an honest one" lying-alone "$mirror/archives"
equals lying-alone "after a lie"

fetches 0 "a slow mirror is left for a fast one" slow "$mirror/slow,$mirror/archives"
equals slow "beside a slow mirror"
fetches 0 "what one lacks is had from another" lacking-one "$mirror/lacking,$mirror/archives"
says 'not there \(HTTP 404\)' "it is told"
equals lacking-one "beside a mirror that lacks a file"
fetches 1 "a folder without a list" none-data "$mirror/none/"
says 'neither checksums_sha256.txt nor urls.txt' "it says which lists there may be"
[ ! -e none-data ] && ok "nothing is made" || not_ok "a data folder was made without a list"

nice -n 1 "$quipu" fetch --data-dir stopped --genesis "$genesis" --from "$mirror/slow" >fetch.log 2>&1 &
process=$!
begins "$process" stopped || not_ok "no download has begun before Ctrl-C"
kill -INT "$process" 2>/dev/null || true
wait "$process" && found=0 || found=$?
same "$found" 130 "Ctrl-C ends it"
cp fetch.log "$output"
says '^stopped: the same command again goes on' "it says how to go on"
fetches 0 "it goes on and keeps the archives" stopped "$mirror/archives" --keep kept
equals stopped "after Ctrl-C"
for file in archives/*.ere; do
    cmp --quiet "$file" "kept/$(basename "$file")" || not_ok "$file was not kept"
done
: >"$access"
fetches 0 "kept archives" again "$mirror/archives" --keep kept
same "$(asked '"GET [^"]*\.ere ')" 0 "kept archives are not downloaded again"

# The rest comes from a node.
starts node '^listening on (.*)$' "$quipu" serve --data-dir local --listen 127.0.0.1:0
node=$address
fetches 0 "a part of the history" followed "$mirror/archives" --blocks 0..8600
starts followed '^listening on (.*)$' "$quipu" serve --data-dir followed --upstream "$node" \
    --listen 127.0.0.1:0
tip=
for _ in {1..400}; do
    tip=$(curl -s "$address" -d '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}' |
        json 'value.get("result")')
    [ "$tip" != 0x21fb ] || break
    sleep 0.1
done
same "$tip" 0x21fb "a server goes on from there and follows a node up to its tip"
