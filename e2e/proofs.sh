#!/usr/bin/env bash
# Proof bundles: the Python example of docs/proofs.md and the explorer's verifier refuse every change of one
# byte, and what a server and a data folder prove is verified by code of others, go-ethereum's and
# ethereumjs's tries.

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

fixtures=$root/crates/proof/tests/fixtures
example=$root/docs/proofs/verify.py

exits 0 "the example's library is installed" "$root/e2e/install" proofs "$target/e2e"
python=$target/e2e/proofs/python/bin/python

# anchor BUNDLE: what it leads to.
anchor() {
    json '"{}:{}".format(value["anchor"].get("number", "accumulator"), value["anchor"]["hash"])' <"$1"
}

for name in transaction-headers receipt-headers log-accumulator; do
    bundle=$fixtures/$name.json
    exits 0 "$name: proven without an anchor" "$python" "$example" "$bundle"
    says '^proven by anchor .* if it is canonical' "$name: says what is left to trust"
    trusted=$(anchor "$bundle")
    exits 0 "$name: proven against its anchor" "$python" "$example" "$bundle" "$trusted"
    says '^proven by anchor [^ ]* *$' "$name: leaves nothing to trust"
    exits 0 "$name: proven from a pipe" "$python" "$example" /dev/stdin "$trusted" <"$bundle"
    other=${trusted%?}$([ "${trusted: -1}" = 0 ] && echo 1 || echo 0)
    exits 1 "$name: refused against another anchor" "$python" "$example" "$bundle" "$other"
    says '^refused at anchor .* you do not trust it, but ' "$name: names the step and what is trusted"
done
exits 1 "a bundle of another kind is refused" "$python" "$example" "$fixtures/block.json"
says '^refused at text: ' "names the step"

exits 0 "no change of one byte is accepted" "$python" "$root/e2e/proofs/changes.py" \
    "$fixtures"/{transaction-headers,receipt-headers,log-accumulator}.json
cat "$output"

# --- the explorer's verifier

exits 0 "the explorer refuses every change of one byte, in the words of quipu verify-proof" \
    env QUIPU="$quipu" node --test "$root/e2e/explorer/verify.test.mjs"

# --- by others, of a server

exits 0 "the clients are installed" "$root/e2e/install" clients "$target/e2e"
enters clients
starts_demo --block-count 160 --txs-per-block 4 --seed 1
# Every transaction with its receipt; the text of a bundle is part of it.
python3 - "$url" 159 >bundles 2>blocks <<'PYTHON'
import json
import sys
import urllib.request

def ask(method, *params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    request = urllib.request.Request(
        sys.argv[1], body.encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        text = answer.read().decode()
    head, tail = '{"jsonrpc":"2.0","id":1,"result":', "}"
    assert text.startswith(head) and text.endswith(tail), text[:200]
    return text[len(head) : -len(tail)]

for number in range(int(sys.argv[2]) + 1):
    block = json.loads(ask("eth_getBlockByNumber", number, False))
    for position, hash in enumerate(block["transactions"]):
        print(ask("quipu_proveReceipt", hash, min(number + position, int(sys.argv[2]))))
    print(ask("quipu_proveBlock", number), file=sys.stderr)
PYTHON
count=$(wc -l <bundles)
if [ "$count" -gt 400 ]; then ok "$count receipts are proven"; else not_ok "only $count bundles"; fi
exits 0 "go-ethereum's trie verifies every path" "$target/e2e/bin/client-go" proofs bundles
says "^$count bundles, " "$(tail -n 1 "$output")"
exits 0 "ethereumjs's trie verifies every path" node proofs.mjs bundles
says "^$count bundles, " "$(tail -n 1 "$output")"
# One digit of the last transaction's bytes is another.
python3 -c '
import sys
*lines, last = sys.stdin.read().splitlines()
before, rlp = last.split("\"rlp\":\"", 1)
digit = "1" if rlp[40] != "1" else "2"
print(*lines, f"{before}\"rlp\":\"{rlp[:40]}{digit}{rlp[41:]}", sep="\n")' <bundles >false
refuses "go-ethereum refuses a false transaction" "$target/e2e/bin/client-go" proofs false
refuses "ethereumjs refuses a false transaction" node proofs.mjs false
for line in 1 $((count / 2)) "$count"; do
    sed -n "${line}p" bundles >bundle.json
    trusted=$(anchor bundle.json)
    exits 0 "bundle $line: quipu verifies it" "$quipu" verify-proof bundle.json --anchor "$trusted"
    exits 0 "bundle $line: the example verifies it" "$python" "$example" bundle.json "$trusted"
done
sed -n 100p blocks >block.json
exits 0 "a whole block is verified" "$quipu" verify-proof block.json
says '^proven: all [0-9]+ transactions and receipts' "it says of what"
sed -n '$p' false >false.json
exits 1 "quipu refuses a false transaction" "$quipu" verify-proof false.json
