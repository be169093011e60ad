"""web3.py, unmodified: the six reads by its own functions.

usage: client_web3.py URL expected.json

The hashes and senders that it is held against were worked out by the libraries it is built on: see
expected.py.
"""

import sys

from eth_account import Account
from web3 import Web3
from web3.exceptions import BlockNotFound, TransactionNotFound

from agree import ABSENT_HASH, Agreement, plain, read_expected

url, path = sys.argv[1:]
expected = read_expected(path)
client = Web3(Web3.HTTPProvider(url, request_kwargs={"timeout": 60}))
eth = client.eth
agreement = Agreement()


def without_zeros(value):
    """The same with r and s as quantities: web3.py gives them as bytes, two digits each."""
    if isinstance(value, dict):
        return {name: hex(int(item, 16)) if name in ("r", "s") else without_zeros(item)
                for name, item in value.items()}
    return [without_zeros(item) for item in value] if isinstance(value, list) else value


def hold(what, found, wanted):
    agreement.hold(what, without_zeros(plain(found)), wanted)


assert client.is_connected()
hold("chain id", eth.chain_id, hex(expected["chainId"]))
for held in expected["blocks"]:
    block, receipts, raws = held["block"], held["receipts"], held["raw"]
    number, block_hash = int(block["number"], 16), block["hash"]
    hashes = block | {"transactions": [item["hash"] for item in block["transactions"]]}
    hold(f"block {number}", eth.get_block(number, True), block)
    hold(f"block {number} by hash", eth.get_block(block_hash), hashes)
    for index, (wanted, receipt, raw) in enumerate(zip(block["transactions"], receipts, raws)):
        of = wanted["hash"]
        hold(f"transaction {of}", eth.get_transaction(of), wanted)
        by_number = eth.get_transaction_by_block(number, index)
        hold(f"transaction {number}/{index}", by_number, wanted)
        by_hash = eth.get_transaction_by_block(block_hash, index)
        hold(f"transaction {block_hash}/{index}", by_hash, wanted)
        hold(f"receipt {of}", eth.get_transaction_receipt(of), receipt)
        # It refuses the high s that only Frontier allowed.
        if index == 0 and int(wanted["s"], 16) < 2**255:
            hold(f"sender of {of}", Account.recover_transaction(raw), by_hash["from"].lower())

past = len(expected["blocks"])
for refusal, call in [
    (BlockNotFound, lambda: eth.get_block(past)),
    (BlockNotFound, lambda: eth.get_block(ABSENT_HASH)),
    (TransactionNotFound, lambda: eth.get_transaction(ABSENT_HASH)),
    (TransactionNotFound, lambda: eth.get_transaction_by_block(0, 99)),
    (TransactionNotFound, lambda: eth.get_transaction_by_block(ABSENT_HASH, 0)),
    (TransactionNotFound, lambda: eth.get_transaction_receipt(ABSENT_HASH)),
]:
    try:
        thrown = f"no refusal but {call()}"
    except (BlockNotFound, TransactionNotFound) as error:
        thrown = type(error).__name__
    agreement.hold("what is not there", thrown, refusal.__name__)
agreement.conclude()
