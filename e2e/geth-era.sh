#!/usr/bin/env bash
# What Quipu writes, geth's own tool accepts; what one refuses, so does the other.

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

era=$target/e2e/bin/era

# Blocks of the sample chain. It merges at block 64, where era1 ends and ere goes on.
block_count=160

# accepts FORMAT: geth's tool reads a sample chain in this format as Quipu meant it.
accepts() {
    local format=$1 folder=$work/$1
    exits 0 "$format: quipu sample" "$quipu" sample --to "$folder" --format "$format" \
        --block-count "$block_count" --txs-per-block 12 --seed 7
    exits 0 "$format: quipu verify" "$quipu" verify --json --genesis "$folder/genesis.json" "$folder"
    local ours=$work/$format.json
    cp "$output" "$ours"
    local last count accumulator
    last=$(json 'value["last"]' <"$ours")
    count=$((last + 1))
    accumulator=$(json 'value["accumulator"]' <"$ours")

    exits 0 "$format: era info" "$era" --dir "$folder" --network sample info 0
    same "$(json 'value["startBlock"], value["count"]' <"$output")" "0 $count" \
        "$format: geth counts the same blocks"
    same "$(json 'value["accumulator"]' <"$output")" "$accumulator" \
        "$format: geth reads the same accumulator root"

    # Every block, decoded by geth: the links between them prove that each hash but the last is
    # the one Quipu meant, and the last is compared.
    local number parent=0x0000000000000000000000000000000000000000000000000000000000000000
    local hash="" transactions=0 unlinked=0
    for ((number = 0; number < count; number++)); do
        "$era" --dir "$folder" --network sample block --txs "$number" >"$output"
        read -r hash found_parent found_transactions < <(
            json 'value["hash"], value["parentHash"], len(value["transactions"])' <"$output"
        )
        [ "$found_parent" = "$parent" ] || unlinked=$((unlinked + 1))
        parent=$hash
        transactions=$((transactions + found_transactions))
    done
    same "$unlinked" 0 "$format: geth reads $count blocks, each the child of the one before"
    same "$hash" "$(json 'value["last_hash"]' <"$ours")" "$format: geth ends at the same hash"
    same "$transactions" "$(json 'value["transactions"]' <"$ours")" \
        "$format: geth reads the same number of transactions"

    echo "$accumulator" >"$work/$format.roots"
    exits 0 "$format: era verify recomputes roots and accumulator" \
        "$era" --dir "$folder" --network sample verify "$work/$format.roots"
}

# is_refused FORMAT: a body with one flipped bit is refused by both.
is_refused() {
    local format=$1 archive
    local folder=$work/$format-damaged
    cp -r "$work/$format" "$folder"
    archive=$(find "$folder" -name "*.$format")
    python3 "$root/e2e/flip-body.py" "$archive"
    refuses "$format: geth refuses a flipped bit" \
        "$era" --dir "$folder" --network sample verify "$work/$format.roots"
    exits 1 "$format: quipu refuses a flipped bit" \
        "$quipu" verify --genesis "$folder/genesis.json" "$archive"
    says "$(basename "$archive").*byte [0-9]+" "$format: quipu names file and byte"
}

# is_exported FORMAT: what went through a data folder is still what geth accepts.
is_exported() {
    local format=$1 folder=$work/$1 out=$work/$1-exported
    exits 0 "$format: quipu import" "$quipu" import --data-dir "$work/$format-data" \
        --genesis "$folder/genesis.json" "$folder"
    exits 0 "$format: quipu export" "$quipu" export --data-dir "$work/$format-data" \
        --format "$format" --to "$out"
    exits 0 "$format: the export is the archive that was imported" \
        cmp "$folder"/*."$format" "$out"/*."$format"
    exits 0 "$format: era verify accepts the export" \
        "$era" --dir "$out" --network sample verify "$work/$format.roots"
}

exits 0 "geth's era tool is installed" "$root/e2e/install" era "$target/e2e"
for format in era1 ere; do
    accepts "$format"
    is_exported "$format"
    is_refused "$format"
done

# The chain that came as ere, as the era1 that geth knew before.
exits 0 "quipu export writes era1 of a chain that came as ere" \
    "$quipu" export --data-dir "$work/ere-data" --format era1 --to "$work/ere-as-era1"
exits 0 "it is the chain's era1" cmp "$work"/era1/*.era1 "$work"/ere-as-era1/*.era1
exits 0 "era verify accepts it" \
    "$era" --dir "$work/ere-as-era1" --network sample verify "$work/era1.roots"
