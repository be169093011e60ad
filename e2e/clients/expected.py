"""The answers that clients must get, worked out from an archive with nothing of Quipu's.

usage: expected.py ARCHIVE.ere GENESIS.json > expected.json

The archive is read by this script itself, RLP by `rlp`, hashes and senders by `eth-hash` and
`eth-keys`. What comes out has the shape of the execution APIs' objects:

    {"chainId": ..., "blocks": [{"block": ..., "receipts": [...], "raw": [...]}, ...]}

where the block holds whole transactions, and `raw` has them in their EIP-2718 form.
"""

import json
import struct
import sys

import cramjam
import rlp
from eth_keys import keys
from eth_utils import keccak

HEADER, BODY, SLIM_RECEIPTS = b"\x03\x00", b"\x04\x00", b"\x0a\x00"

HEADER_FIELDS = [
    ("parentHash", "data"), ("sha3Uncles", "data"), ("miner", "data"), ("stateRoot", "data"),
    ("transactionsRoot", "data"), ("receiptsRoot", "data"), ("logsBloom", "data"),
    ("difficulty", "quantity"), ("number", "quantity"), ("gasLimit", "quantity"),
    ("gasUsed", "quantity"), ("timestamp", "quantity"), ("extraData", "data"),
    ("mixHash", "data"), ("nonce", "data"), ("baseFeePerGas", "quantity"),
    ("withdrawalsRoot", "data"), ("blobGasUsed", "quantity"), ("excessBlobGas", "quantity"),
    ("parentBeaconBlockRoot", "data"), ("requestsHash", "data"),
    ("blockAccessListHash", "data"), ("slotNumber", "quantity"),
]

# The unsigned fields of every type, in their order.
TRANSACTION_FIELDS = {
    0: ["nonce", "gasPrice", "gas", "to", "value", "input"],
    1: ["chainId", "nonce", "gasPrice", "gas", "to", "value", "input", "accessList"],
    2: ["chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", "gas", "to", "value", "input",
        "accessList"],
    3: ["chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", "gas", "to", "value", "input",
        "accessList", "maxFeePerBlobGas", "blobVersionedHashes"],
    4: ["chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", "gas", "to", "value", "input",
        "accessList", "authorizationList"],
}


def number(item):
    return int.from_bytes(item, "big")


def quantity(value):
    return hex(number(value) if isinstance(value, bytes) else value)


def data(value):
    return "0x" + value.hex()


def entries(path):
    """The tags and bytes of an e2store file."""
    with open(path, "rb") as file:
        while head := file.read(8):
            tag, length, reserved = struct.unpack("<2sIH", head)
            assert reserved == 0
            yield tag, file.read(length)


def inflated(path, wanted):
    found = (body for tag, body in entries(path) if tag == wanted)
    return [rlp.decode(bytes(cramjam.snappy.decompress(body))) for body in found]


def header_object(fields):
    shapes = {"data": data, "quantity": quantity}
    return {name: shapes[shape](value) for (name, shape), value in zip(HEADER_FIELDS, fields)}


def field(name, item):
    if name == "to":
        return data(item) if item else None
    if name == "input":
        return data(item)
    if name == "accessList":
        return [{"address": data(address), "storageKeys": [data(key) for key in slots]}
                for address, slots in item]
    if name == "blobVersionedHashes":
        return [data(versioned) for versioned in item]
    if name == "authorizationList":
        names = ["chainId", "address", "nonce", "yParity", "r", "s"]
        return [{name: (data if name == "address" else quantity)(value)
                 for name, value in zip(names, signed)} for signed in item]
    return quantity(item)


def transaction_object(raw, place, base_fee):
    """A transaction by its EIP-2718 form."""
    kind = raw[0] if raw[0] < 0x80 else 0
    items = rlp.decode(raw[1:] if kind else raw)
    names = TRANSACTION_FIELDS[kind]
    unsigned, (v, r, s) = items[:len(names)], items[len(names):]
    found = {name: field(name, item) for name, item in zip(names, unsigned)}
    found |= {"type": hex(kind), "hash": data(keccak(raw)), **place}
    found |= {"v": quantity(v), "r": quantity(r), "s": quantity(s)}
    if kind:
        parity, signed = number(v), bytes([kind]) + rlp.encode(unsigned)
        found["yParity"] = quantity(v)
    elif number(v) >= 35:
        chain_id, parity = divmod(number(v) - 35, 2)
        found["chainId"] = quantity(chain_id)
        signed = rlp.encode([*unsigned, chain_id, b"", b""])
    else:
        parity, signed = number(v) - 27, rlp.encode(unsigned)
    signature = keys.Signature(vrs=(parity, number(r), number(s)))
    key = signature.recover_public_key_from_msg_hash(keccak(signed))
    found["from"] = data(key.to_canonical_address())
    if kind >= 2:
        tip, most = (int(found[name], 16) for name in ["maxPriorityFeePerGas", "maxFeePerGas"])
        found["gasPrice"] = hex(min(most, base_fee + tip))
    return found


def add_to_bloom(bloom, item):
    digest = keccak(item)
    for at in (0, 2, 4):
        bit = int.from_bytes(digest[at:at + 2], "big") & 2047
        bloom[255 - bit // 8] |= 1 << (bit % 8)


def blob_gas_price(genesis, timestamp, excess):
    """EIP-4844's fake_exponential, with the fraction that EIP-7840's schedule gives."""
    config = genesis["config"]
    times = [(config[name + "Time"], name) for name in config["blobSchedule"]]
    _, fork = max(entry for entry in times if entry[0] <= timestamp)
    fraction = config["blobSchedule"][fork]["baseFeeUpdateFraction"]
    step, term, total = 1, fraction, 0
    while term:
        total += term
        term = term * excess // (fraction * step)
        step += 1
    return total // fraction


def receipt_objects(genesis, header, transactions, slim):
    gas_before, log_index = 0, 0
    for transaction, (kind, outcome, gas, logs) in zip(transactions, slim, strict=True):
        assert quantity(kind) == transaction["type"]
        names = ["blockHash", "blockNumber", "transactionIndex", "from", "to", "type"]
        found = {name: transaction[name] for name in names}
        found |= {"transactionHash": transaction["hash"], "cumulativeGasUsed": quantity(gas)}
        found["gasUsed"] = hex(number(gas) - gas_before)
        found["effectiveGasPrice"] = transaction["gasPrice"]
        gas_before = number(gas)
        found |= {"root": data(outcome)} if len(outcome) == 32 else {"status": quantity(outcome)}
        created = None
        if transaction["to"] is None:
            sender = bytes.fromhex(transaction["from"][2:])
            created = data(keccak(rlp.encode([sender, int(transaction["nonce"], 16)]))[12:])
        found["contractAddress"] = created
        if "blobVersionedHashes" in transaction:
            timestamp, excess = (int(header[name], 16) for name in ["timestamp", "excessBlobGas"])
            found["blobGasUsed"] = hex(131072 * len(transaction["blobVersionedHashes"]))
            found["blobGasPrice"] = hex(blob_gas_price(genesis, timestamp, excess))
        bloom = bytearray(256)
        found["logs"] = []
        for address, topics, body in logs:
            for item in [address, *topics]:
                add_to_bloom(bloom, item)
            found["logs"].append({
                "address": data(address), "topics": [data(topic) for topic in topics],
                "data": data(body), "logIndex": hex(log_index), "removed": False,
                "blockHash": transaction["blockHash"], "blockNumber": transaction["blockNumber"],
                "blockTimestamp": header["timestamp"], "transactionHash": transaction["hash"],
                "transactionIndex": transaction["transactionIndex"],
            })
            log_index += 1
        found["logsBloom"] = data(bloom)
        yield found


def block_objects(genesis, fields, body, slim):
    header = header_object(fields)
    block_hash = data(keccak(rlp.encode(fields)))
    base_fee = int(header.get("baseFeePerGas", "0x0"), 16)
    raws = [item if isinstance(item, bytes) else rlp.encode(item) for item in body[0]]
    transactions = []
    for index, raw in enumerate(raws):
        place = {"blockHash": block_hash, "blockNumber": header["number"],
                 "blockTimestamp": header["timestamp"], "transactionIndex": hex(index)}
        transactions.append(transaction_object(raw, place, base_fee))
    block = header | {"hash": block_hash, "transactions": transactions}
    block["size"] = hex(len(rlp.encode([fields, *body])))
    block["uncles"] = [data(keccak(rlp.encode(ommer))) for ommer in body[1]]
    if len(body) > 2:
        names = ["index", "validatorIndex", "address", "amount"]
        block["withdrawals"] = [
            {name: (data if name == "address" else quantity)(value)
             for name, value in zip(names, withdrawal)} for withdrawal in body[2]]
    receipts = list(receipt_objects(genesis, header, transactions, slim))
    return {"block": block, "receipts": receipts, "raw": [data(raw) for raw in raws]}


def main():
    archive, genesis_path = sys.argv[1:]
    with open(genesis_path, encoding="utf-8") as file:
        genesis = json.load(file)
    parts = (inflated(archive, tag) for tag in (HEADER, BODY, SLIM_RECEIPTS))
    blocks = [block_objects(genesis, *part) for part in zip(*parts, strict=True)]
    kinds = {item["type"] for block in blocks for item in block["block"]["transactions"]}
    assert kinds == {"0x0", "0x1", "0x2", "0x3", "0x4"}, kinds
    json.dump({"chainId": genesis["config"]["chainId"], "blocks": blocks}, sys.stdout)


main()
