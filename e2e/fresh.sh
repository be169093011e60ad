#!/usr/bin/env bash
# What the README promises to someone who has just built Quipu.

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"
cd "$work"

exits 0 "quipu --help" "$quipu" --help
says verify "the help names verify"
exits 0 "quipu --version" "$quipu" --version

starts_demo --seed 1
cp "$work/demo.log" "$output"
says '^made [0-9]+ blocks, [0-9]+ transactions' "demo tells what it made"
says '^[0-9]+ files? imported' "demo imports what it made"
says '^sample, chain id [0-9]+ in ' "demo shows what is held"
grep -E '^ +curl ' "$work/demo.log" >"$work/curls"
same "$(wc -l <"$work/curls")" 4 "demo shows four commands to try"
while IFS= read -r command; do
    exits 0 "as shown:$command" bash -c "$command"
    says '"result":' "it has a result"
done <"$work/curls"
# The chain is the same everywhere, so the README can name its hashes.
cp "$work/demo.log" "$output"
sed -n '/^## First answer/,/^## Verify/p' "$root/README.md" | grep -oE '0x[0-9a-f]{64}' | sort -u >"$work/hashes"
same "$(wc -l <"$work/hashes")" 3 "the README names three hashes"
while IFS= read -r hash; do
    says "$hash" "the demo has ${hash:0:10}... as the README says"
done <"$work/hashes"
exits 0 "quipu compare finds the demo equal to the data that it serves" \
    "$quipu" compare --data-dir "$(echo "$work"/demo.temporary/*/data)" --with "$url"
says ': no differences$' "it says so"
kill "$process"
wait "$process" && stopped=0 || stopped=$?
same "$stopped" 0 "demo ends when it is told to"
same "$(ls "$work/demo.temporary")" "" "demo removes its folder"

exits 0 "quipu sample" "$quipu" sample --to "$work/demo"
exits 0 "quipu verify proves the sample's archives" \
    "$quipu" verify --genesis "$work/demo/genesis.json" "$work/demo"
says ' consistent, linked' "verify tells how far they can be trusted"

archive=$(find "$work/demo" -name '*.ere' | sort | head -n 1)
damaged=$work/damaged/$(basename "$archive")
mkdir "$work/damaged"
cp "$archive" "$damaged"
python3 "$root/e2e/flip-body.py" "$damaged"
exits 1 "quipu verify refuses a damaged file" "$quipu" verify "$damaged"
says "$(basename "$archive").*byte [0-9]+" "the refusal names file and byte"

exits 1 "quipu stat fails on a missing data folder" "$quipu" stat --data-dir "$work/missing"
says "quipu import --data-dir $work/missing" "the failure says how to make one"
exits 1 "quipu import refuses a damaged file" \
    "$quipu" import --data-dir "$work/data" --genesis "$work/demo/genesis.json" "$damaged"
says "$(basename "$archive").*byte [0-9]+" "the refusal names file and byte"

exits 1 "quipu verify fails on a missing file" "$quipu" verify "$work/missing.ere"
says 'missing\.ere' "the failure names the file"
exits 2 "quipu verify without a path is a wrong command line" "$quipu" verify
exits 2 "an unknown command is a wrong command line" "$quipu" unravel
exits 2 "a wrong anchor is a wrong command line" "$quipu" verify --anchor 7 "$archive"
