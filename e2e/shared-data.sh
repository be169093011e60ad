#!/usr/bin/env bash
# Real chain data, where it lies beside the checkout: too large, and not ours, to commit.

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

data=${QUIPU_TEST_DATA:-$root/../shared/data}
# geth's own fixture for the layout of ere; its dummy header cannot be true.
fixture=sepolia-00000-deadbeef-noreceipts.ere

if [ ! -d "$data" ]; then
    echo "skipped: there is no $data"
    exit 0
fi
data=$(cd "$data" && pwd)
echo "reading $data"

for archive in "$data"/era1/*.era1 "$data"/ere/*.{era1,ere}; do
    name=$(basename "$archive")
    if [ "$name" != "$fixture" ]; then
        exits 0 "$name is proven" "$quipu" verify "$archive"
    fi
done

# Into a data folder and out again, in its own format and as lines of JSON.
for archive in "$data"/era1/*.era1 "$data"/ere/*.{era1,ere}; do
    name=$(basename "$archive")
    folder=$work/folder out=$work/out
    rm -rf "$folder" "$out"
    if [ "$name" = "$fixture" ]; then
        exits 1 "$name is not imported" "$quipu" import --data-dir "$folder" --unanchored \
            --without-receipts "$archive"
        says "$name.*block [0-9]+.*byte [0-9]+" "the refusal names file, block and byte"
        continue
    fi
    exits 0 "$name is imported" "$quipu" import --data-dir "$folder" --unanchored \
        --without-receipts "$archive"
    exits 0 "$name: quipu verify" "$quipu" verify --json "$archive"
    expected=$(json 'value["first"], value["last"], value["transactions"]' <"$output")
    exits 0 "$name: quipu stat" "$quipu" stat --json --data-dir "$folder"
    cp "$output" "$work/stat.json"
    same "$(json 'value["coverage"][0]["first"], value["tip"]["number"], value["transactions"]' \
        <"$work/stat.json")" "$expected" "$name: the folder holds what the archive has"
    same "$(json 'value["bytes"]["total"]' <"$work/stat.json")" \
        "$(cat "$folder"/* | wc -c)" "$name: stat counts every byte of the folder"
    exits 0 "$name is exported" "$quipu" export --data-dir "$folder" --to "$out" \
        --format "${name##*.}"
    exits 0 "$name: the export is proven" "$quipu" verify "$out"
    exits 0 "$name: the export is the same file" cmp "$archive" "$out/$name"
    exits 0 "$name is exported as lines of JSON" "$quipu" export --data-dir "$folder" \
        --to "$out" --format ndjson
    same "$(cat "$out"/*.ndjson | wc -l)" "$(json 'value["blocks"]' <"$work/stat.json")" \
        "$name: as many lines as blocks"
done

exits 0 "mainnet's first two eras are imported" \
    "$quipu" import --data-dir "$work/mainnet" "$data"/era1/mainnet-*.era1
exits 0 "quipu stat of mainnet" "$quipu" stat --data-dir "$work/mainnet"
says "0\.\.16383 +anchored by accumulator epochs 0 to 1" "all of it is anchored"
exits 0 "mainnet is exported as era1" \
    "$quipu" export --data-dir "$work/mainnet" --format era1 --to "$work/mainnet-era1"
for archive in "$data"/era1/mainnet-*.era1; do
    name=$(basename "$archive")
    exits 0 "$name comes out as it is published" cmp "$archive" "$work/mainnet-era1/$name"
done
exits 2 "archives of two networks are a wrong command line" "$quipu" import \
    --data-dir "$work/two" "$data"/era1/*.era1
says "several networks: mainnet, sepolia" "it says which"

exits 0 "mainnet's first epochs are proven against their epoch roots" \
    "$quipu" verify "$data"/era1/mainnet-*.era1
says "(^| )anchored" "they are anchored"

exits 0 "the conformance chain is proven against its genesis" \
    "$quipu" verify --genesis "$data/execution-apis/genesis.json" \
    "$data"/ere/hivechain-00000-d226371d-noproofs.ere
says " linked" "it is linked to genesis"

exits 1 "$fixture is refused" "$quipu" verify "$data/ere/$fixture"
says "$fixture.*block [0-9]+" "the refusal names file and block"
says "$fixture.*byte [0-9]+" "the refusal names file and byte"
