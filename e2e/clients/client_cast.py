"""cast, unmodified: the six reads by its commands.

usage: client_cast.py CAST URL expected.json

Every question is a process, so cast is asked for some blocks only: the first transaction of every
type, a creation, one before Byzantium, and one that failed. A transaction by its block and index it
knows by `cast rpc` alone.
"""

import json
import subprocess
import sys

from agree import ABSENT_HASH, Agreement, plain, read_expected

cast, url, path = sys.argv[1:]
expected = read_expected(path)
agreement = Agreement()


def run(*args):
    command = [cast, *args, "--rpc-url", url]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def ask(*args):
    ran = run(*args)
    if ran.returncode != 0:
        return f"exit code {ran.returncode}: {ran.stderr.strip()}"
    return plain(json.loads(ran.stdout))


def chosen():
    """The first transaction of each kind: its block's position and its own."""
    found = {}
    for at, held in enumerate(expected["blocks"]):
        for index, transaction in enumerate(held["block"]["transactions"]):
            receipt = held["receipts"][index]
            found.setdefault(transaction["type"], (at, index))
            if transaction["to"] is None:
                found.setdefault("creation", (at, index))
            if "root" in receipt:
                found.setdefault("before Byzantium", (at, index))
            if receipt.get("status") == "0x0":
                found.setdefault("failed", (at, index))
            if "chainId" in transaction:
                found.setdefault("replay-protected " + transaction["type"], (at, index))
    return found


for kind, (at, index) in chosen().items():
    held = expected["blocks"][at]
    block, wanted, receipt = held["block"], held["block"]["transactions"][index], held["receipts"][index]
    hashes = block | {"transactions": [item["hash"] for item in block["transactions"]]}
    of = wanted["hash"]
    agreement.hold(f"{kind}: block", ask("block", str(at), "--full", "--json"), block)
    agreement.hold(f"{kind}: block by hash", ask("block", block["hash"], "--json"), hashes)
    agreement.hold(f"{kind}: transaction", ask("tx", of, "--json"), wanted)
    for method, key in [("Number", block["number"]), ("Hash", block["hash"])]:
        by_index = ask("rpc", f"eth_getTransactionByBlock{method}AndIndex", key, hex(index))
        agreement.hold(f"{kind}: transaction by block {method}", by_index, wanted)
    agreement.hold(f"{kind}: receipt", ask("receipt", of, "--json"), receipt)

# The exit code says nothing: the launcher that npm installs ends with 0 whatever cast says.
for args in [("block", str(len(expected["blocks"]))), ("tx", ABSENT_HASH)]:
    ran = run(*args)
    agreement.hold(f"what is not there: {args}", ran.stdout, "")
    agreement.hold(f"it says so: {ran.stderr}", "not found" in ran.stderr.lower(), True)
agreement.conclude()
