"""cryo's logs, unmodified, in every form that it has: it asks for ranges, several addresses and topics.

usage: logs_cryo.py URL queries.json
"""

import json
import pathlib
import sys
import tempfile

import cryo
from agree import Agreement, plain, read_expected

url, path = sys.argv[1:]
agreement = Agreement()
# cryo neither hands on the block's time nor that a log is not removed.
UNSEEN = {"blockTimestamp", "removed"}


def listed(value):
    return value if isinstance(value, list) else [value]


def log_of(row):
    """A row of the table in the form of the wire."""
    topics = [row[f"topic{position}"] for position in range(4)]
    names = {
        "address": "address",
        "blockHash": "block_hash",
        "blockNumber": "block_number",
        "data": "data",
        "logIndex": "log_index",
        "transactionHash": "transaction_hash",
        "transactionIndex": "transaction_index",
    }
    log = {name: plain(row[column]) for name, column in names.items()}
    # No data is an empty string.
    return {**log, "data": log["data"] or "0x", "topics": [topic for topic in topics if topic is not None]}


def freezes(asked):
    end = {"earliest": "0", "latest": "latest"}
    first, last = (end.get(asked[name]) or str(int(asked[name], 16)) for name in ("fromBlock", "toBlock"))
    # The end of cryo's range is not in it, unless it is a tag.
    blocks = f"{first}:{last if last == 'latest' else int(last) + 1}"
    options = {f"topic{position}": listed(topic) for position, topic in enumerate(asked.get("topics", [])) if topic}
    if "address" in asked:
        options["contract"] = listed(asked["address"])
    with tempfile.TemporaryDirectory() as folder:
        said = cryo.freeze(
            "logs",
            rpc=url,
            blocks=[blocks],
            columns=["all"],
            hex=True,
            file_format="json",
            output_dir=folder,
            verbose=False,
            **options,
        )
        if said["n_errored"] > 0 or said["n_completed"] == 0:
            return f"{said}"
        files = sorted(pathlib.Path(folder).glob("*.json"))
        return [log_of(row) for file in files for row in json.loads(file.read_text())]


for query in read_expected(path)["queries"]:
    if "blockHash" in query["filter"]:
        continue
    wanted = [{name: value for name, value in log.items() if name not in UNSEEN} for log in query["logs"]]
    agreement.hold(query["name"], freezes(query["filter"]), wanted)
agreement.conclude()
