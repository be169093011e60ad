#!/usr/bin/env bash
# A follower is killed while it merges a slot of 8192 blocks: nothing is lost, the next one goes on with
# the merge, and in the end the files are those of an import. The moments are those of QUIPU_SEED.

# shellcheck source=e2e/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

kills=${QUIPU_KILLS:-5}
seed=${QUIPU_SEED:-$RANDOM}
RANDOM=$seed
# A slot and more than one young segment of the next; the follower begins just below its end.
blocks=8500
sealed=8447
first=8100

names_files() {
    (cd "$1" && ls | grep -E '^(blocks|lookup)')
}

imports() {
    exits 0 "blocks $2 are imported" "$quipu" import --data-dir "$work/$1" --blocks "$2" \
        --genesis "$work/archives/genesis.json" "$work/archives"
}

exits 0 "a chain of $blocks blocks is made" "$quipu" sample --to "$work/archives" \
    --block-count "$blocks" --txs-per-block 10
imports whole "0..$((blocks - 1))"
imports expected "0..$sealed"
imports follower "0..$((first - 1))"
starts node '^listening on (http:.*)$' \
    "$quipu" serve --data-dir "$work/whole" --listen 127.0.0.1:0
node=$address

# follows_node: a server of the folder that follows the node.
follows_node() {
    starts follower '^listening on (http:.*)$' "$quipu" serve --data-dir "$work/follower" \
        --listen 127.0.0.1:0 --upstream "$node"
    ours=$address
    follower=$process
}

# holds PATTERN: the follower's folder has a file of this name.
holds() {
    compgen -G "$work/follower/$1" >/dev/null
}

# awaits PATTERN: it has one within two minutes.
awaits() {
    for _ in {1..1200}; do
        ! holds "$1" || return 0
        sleep 0.1
    done
    not_ok "there is no $1, and the follower says:"
    tail -n 20 "$work/follower.log" >&2
}

# The last piece of the slot, and the slot as one segment.
piece="blocks-*-0000008191-*.segment"
slot="blocks-0000000000-0000008191-*.segment"

follows_node
awaits "$piece"
killed=0
while [ "$killed" -lt "$kills" ] && ! holds "$slot"; do
    sleep "0.$((RANDOM % 10))"
    kill -KILL "$follower"
    wait "$follower" 2>/dev/null || true
    killed=$((killed + 1))
    exits 0 "kill $killed (seed $seed): quipu check passes" "$quipu" check --data-dir "$work/follower"
    ! grep --quiet "not merged into one segment yet" "$output" || pending=1
    follows_node
done
# On a quick machine the merge may be over before the first kill: then nothing was left to go on with.
[ -z "${pending:-}" ] || ok "a kill left a slot that was not merged, and quipu check said so"
awaits "$slot"
catches_up "$node"
kill "$follower"
wait "$follower" || true
# The next writer removes what readers of the follower still held when it ended.
imports follower "0..$((first - 1))"
exits 0 "quipu check passes in the end" "$quipu" check --data-dir "$work/follower"
same "$(names_files "$work/follower")" "$(names_files "$work/expected")" \
    "after $killed kills the files are those of an import"
