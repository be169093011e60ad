"""Asks one server over one connection, kind after kind in turns, and tells how long answers take.

usage: ask.py URL sample|mainnet
"""
import http.client
import json
import random
import statistics
import sys
import time
from urllib.parse import urlparse

GOAL_MS = 2.0
ROUNDS = 300

client = http.client.HTTPConnection(urlparse(sys.argv[1]).netloc)


def ask(method, *params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    begun = time.perf_counter()
    client.request("POST", "/", body, {"content-type": "application/json"})
    text = client.getresponse().read()
    return (time.perf_counter() - begun) * 1000, text


def result(method, *params):
    return json.loads(ask(method, *params)[1])["result"]


def tell(name, times, sizes):
    middle, best = statistics.median(times), min(times)
    print(f"{name}: {middle:.2f} ms, best {best:.2f} ms, {statistics.median(sizes):,.0f} bytes")
    return middle


random.seed(1)
tip = int(result("eth_blockNumber"), 16)
if sys.argv[2] == "mainnet":
    times, sizes = zip(*((time, len(text)) for time, text in
                         (ask("quipu_proveBlock", random.randrange(8192, 16384)) for _ in range(20))))
    tell("a block before the merge with its way to the accumulator", times, sizes)
    sys.exit()

kinds = {
    "a receipt": lambda number, hash: ask("eth_getTransactionReceipt", hash),
    "its bundle, which ends at its block": lambda number, hash: ask("quipu_proveReceipt", hash, number),
    "a transaction's bundle": lambda number, hash: ask("quipu_proveTransaction", hash, number),
    "a block's bundle": lambda number, hash: ask("quipu_proveBlock", number, number),
}
found = {name: ([], []) for name in kinds}
for _ in range(ROUNDS):
    number = random.randrange(tip // 2, tip + 1)
    hashes = result("eth_getBlockByNumber", number, False)["transactions"]
    if not hashes:
        continue
    for name, kind in kinds.items():
        took, text = kind(number, random.choice(hashes))
        assert b'"result":{' in text, text[:200]
        found[name][0].append(took)
        found[name][1].append(len(text))
middles = {name: tell(name, *measured) for name, measured in found.items()}
bundle = middles["its bundle, which ends at its block"]
met = "met" if bundle <= GOAL_MS else "MISSED"
print(f"a receipt's bundle: {bundle:.2f} ms over HTTP, goal {GOAL_MS:.0f} ms: {met}")
