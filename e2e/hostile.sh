#!/usr/bin/env bash
# Hostile clients beside a well-behaved one, in the short form: nothing of it is timed.

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"
cd "$work"

exits 0 "the well-behaved client is answered rightly beside every abuse" \
    "$built/e2e-hostile" --short --quipu "$quipu"
sed -n 's/^\(\[.* s\] [^:]*:.*\)$/  \1/p' "$output"
says '^2[0-9] abuses, no fault$' "every abuse was tried, memory came back, and the server stopped well"
