"""cast logs, unmodified, in every form that it has: one address, one topic a position, no block's hash.

usage: logs_cast.py CAST URL queries.json
"""

import json
import subprocess
import sys

from agree import Agreement, plain, read_expected

cast, url, path = sys.argv[1:]
agreement = Agreement()


def ask(*args):
    command = [cast, "logs", "--json", *args, "--rpc-url", url]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if ran.returncode != 0:
        return f"exit code {ran.returncode}: {ran.stderr.strip()}"
    return plain(json.loads(ran.stdout))


for query in read_expected(path)["queries"]:
    asked = query["filter"]
    topics = asked.get("topics", [])
    if "blockHash" in asked or isinstance(asked.get("address"), list):
        continue
    if any(isinstance(topic, list) for topic in topics):
        continue
    where = ["--from-block", asked["fromBlock"], "--to-block", asked["toBlock"]]
    if "address" in asked:
        where += ["--address", asked["address"]]
    # Any topic at a position is an empty one.
    agreement.hold(query["name"], ask(*where, *(topic or "" for topic in topics)), query["logs"])
agreement.conclude()
