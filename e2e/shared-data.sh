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

exits 0 "mainnet's first epochs are proven against the list of epoch roots" \
    "$quipu" verify --accumulators "$data/mainnet-accumulators.bin" "$data"/era1/mainnet-*.era1
says "(^| )anchored" "they are anchored"

exits 0 "the conformance chain is proven against its genesis" \
    "$quipu" verify --genesis "$data/execution-apis/genesis.json" \
    "$data"/ere/hivechain-00000-d226371d-noproofs.ere
says " linked" "it is linked to genesis"

exits 1 "$fixture is refused" "$quipu" verify "$data/ere/$fixture"
says "$fixture.*block [0-9]+" "the refusal names file and block"
says "$fixture.*byte [0-9]+" "the refusal names file and byte"
