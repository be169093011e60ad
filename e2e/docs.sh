#!/usr/bin/env bash
# Every command line that the documents on the data folder and on operations show, run as it stands there.

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

mkdir "$work/bin"
ln -s "$quipu" "$work/bin/quipu"
ln -s "$root/packaging/quipu-backup" "$work/bin/quipu-backup"
export PATH=$work/bin:$PATH HOME=$work
unset XDG_DATA_HOME

# Prints the commands of a document's console blocks, one a line, without their comments.
commands() {
    awk '/^```console$/ { on = 1; next } /^```$/ { on = 0 } on' | sed -E 's/ +#.*$//'
}

# runs WHAT: every command of standard input ends well, one after the other in one folder.
runs() {
    local what=$1 line count=0
    mkdir "$work/$what"
    cd "$work/$what"
    while IFS= read -r line; do
        count=$((count + 1))
        exits 0 "$what: $line" bash -c "$line"
    done
    cd "$root"
    if [ "$count" -eq 0 ]; then
        not_ok "$what: no command found"
    fi
}

sed -n '/^## Keep them/,/^## Make/p' "$root/README.md" | commands >"$work/readme"
runs readme-commands <"$work/readme"
commands <"$root/docs/data-folder.md" >"$work/data-folder"
runs data-folder-commands <"$work/data-folder"
commands <"$root/docs/operations.md" >"$work/operations"
runs operations-commands <"$work/operations"
