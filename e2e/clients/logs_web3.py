"""web3.py, unmodified: get_logs of the chain, and of a contract's events.

usage: logs_web3.py URL queries.json
"""

import json
import pathlib
import sys

from web3 import Web3

from agree import Agreement, plain, read_expected

url, path = sys.argv[1:]
web3 = Web3(Web3.HTTPProvider(url))
abi = json.loads((pathlib.Path(__file__).parent / "events.json").read_text(encoding="utf-8"))
agreement = Agreement()


def checksummed(value):
    """web3.py takes no other form of an address."""
    return [checksummed(item) for item in value] if isinstance(value, list) else Web3.to_checksum_address(value)


def end(block):
    return int(block, 16) if block.startswith("0x") else block


def place(asked):
    if "blockHash" in asked:
        return {"block_hash": asked["blockHash"]}
    return {"from_block": end(asked["fromBlock"]), "to_block": end(asked["toBlock"])}


for query in read_expected(path)["queries"]:
    name, asked, logs = query["name"], dict(query["filter"]), query["logs"]
    if "address" in asked:
        asked["address"] = checksummed(asked["address"])
    agreement.hold(name, plain(web3.eth.get_logs(asked)), logs)
    if "event" not in query:
        continue
    event = web3.eth.contract(address=asked["address"], abi=abi).events[query["event"]]
    arguments = {key: value if key == "id" else checksummed(value) for key, value in query["args"].items()}
    found = event().get_logs(argument_filters=arguments, **place(asked))
    places = [{key: log[key] for key in ("transactionHash", "logIndex")} for log in logs]
    agreement.hold(f"{name}: events", plain(found), places)
    decoded = [log["args"]["value"] for log in found]
    agreement.hold(f"{name}: decoded", decoded, [int(log["data"], 16) for log in logs])
agreement.conclude()
