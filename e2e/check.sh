# shellcheck shell=bash
# What every end-to-end script shares; sourced, not run.
#
# Gives: $root (the checkout), $work (a fresh folder, removed at the end), $quipu (the binary
# that the tests use), and the checks below. At its end a script stops what it has started, says how many checks
# passed and failed, and fails if any did or if it broke off.

set -euo pipefail

# Two files that build on this one may be sourced by one script.
[ -z "${check_is_sourced:-}" ] || return 0
check_is_sourced=yes

# Addresses are found in what servers print, and many of them colour it where CI is set.
export NO_COLOR=1
unset FORCE_COLOR CLICOLOR_FORCE

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
output=$work/output
passed=0
failed=0

ok() {
    passed=$((passed + 1))
    echo "ok: $*"
}

not_ok() {
    failed=$((failed + 1))
    echo "FAILED: $*" >&2
}

# exits CODE WHAT COMMAND...: the command ends with this code; what it printed is in $output.
exits() {
    local expected=$1 what=$2 found=0
    shift 2
    "$@" >"$output" 2>&1 || found=$?
    if [ "$found" -eq "$expected" ]; then
        ok "$what"
    else
        not_ok "$what: exit code $found, expected $expected, of: $*"
        tail -n 20 "$output" >&2
    fi
}

# refuses WHAT COMMAND...: the command ends with any code but success.
refuses() {
    local what=$1
    shift
    if "$@" >"$output" 2>&1; then
        not_ok "$what: exit code 0, expected a failure, of: $*"
        tail -n 20 "$output" >&2
    else
        ok "$what"
    fi
}

# says PATTERN WHAT: the last command printed a line that matches.
says() {
    if grep --quiet --extended-regexp -e "$1" "$output"; then
        ok "$2"
    else
        not_ok "$2: no line matches $1 in:"
        tail -n 20 "$output" >&2
    fi
}

# same FOUND EXPECTED WHAT
same() {
    if [ "$1" = "$2" ]; then
        ok "$3"
    else
        not_ok "$3: found $1, expected $2"
    fi
}

# Reads one JSON value from standard input; $1 is a Python expression over it, called `value`.
json() {
    python3 -c "import json, sys; value = json.load(sys.stdin); print($1)"
}

# enters FOLDER: a copy of this folder of scripts, $work/FOLDER, where they find their modules.
enters() {
    cp -r "$root/e2e/$1" "$work/$1"
    ln --symbolic "$target/e2e/$1/node_modules" "$work/$1/node_modules"
    cd "$work/$1"
}

# starts NAME PATTERN COMMAND...: a server; $address is what the pattern finds in the log, $process the
# process. It is stopped at the end, whatever happens.
starts() {
    local name=$1 pattern=$2 log=$work/$1.log
    shift 2
    # Here, not when the process that is started comes to it: it is read at once.
    : >"$log"
    "$@" >"$log" 2>&1 &
    process=$!
    for _ in {1..600}; do
        address=$(sed -nE "s/$pattern/\1/p" "$log" | head -n 1)
        [ -z "$address" ] || break
        kill -0 "$process" 2>/dev/null || break
        sleep 0.1
    done
    if [ -n "$address" ]; then
        ok "$name listens on $address"
    else
        cat "$log" >&2
        return 1
    fi
}

# starts_demo ARGUMENT...: a demo on a free port. $url is where it listens, and its temporary folder lies
# in $work/demo.temporary.
starts_demo() {
    mkdir -p "$work/demo.temporary"
    starts demo '^listening on (.*)$' env "TMPDIR=$work/demo.temporary" "$quipu" demo \
        --listen 127.0.0.1:0 "$@"
    url=$address
}

# stops: ends the server that was started last.
stops() {
    kill "$process"
    wait "$process" || true
}

finish() {
    local status=$? process
    # Of those that were started; the number of one that ended may be somebody else's by now.
    for process in $(jobs -pr); do
        if kill "$process" 2>/dev/null; then wait "$process" || true; fi
    done
    rm -rf "$work"
    if [ "$status" -ne 0 ]; then
        not_ok "$(basename "$0") broke off with exit code $status"
    fi
    if [ -n "${E2E_TALLY:-}" ]; then
        echo "$passed $failed" >>"$E2E_TALLY"
    else
        echo "$passed passed, $failed failed"
    fi
    [ "$failed" -eq 0 ] || exit 1
}
trap finish EXIT

target=${CARGO_TARGET_DIR:-$root/target}
# The tests' profile; benchmarks name dist.
profile=${QUIPU_PROFILE:-dev}
built=$target/${profile/#dev/debug}
# shellcheck disable=SC2034 # the scripts that source this one use it
quipu=$built/quipu
# With the tests, whose build this is then: alone, dependencies would be built again with fewer features.
packages=(--workspace --bins --tests)
[ "$profile" = dev ] || packages=(--package quipu-cli)
# Started by e2e/run, the binary is there already.
if [ -z "${E2E_TALLY:-}" ]; then
    cargo build --quiet --locked "${packages[@]}" --profile "$profile" --manifest-path "$root/Cargo.toml"
fi
