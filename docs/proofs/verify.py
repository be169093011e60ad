"""Verifies a proof of a transaction or receipt: verify.py BUNDLE [N:HASH | accumulator:ROOT]..."""
import hashlib, json, re, sys, Crypto.Hash.keccak  # pip install pycryptodome
H, N = '"0x(?:[0-9a-f]{2})+"', "(?:0|[1-9][0-9]*)"  # Bytes and numbers have one spelling,
PART = rf'{{"index":{N},"rlp":{H},"proof":\[{H}(?:,{H})*\]}}'  # and so has a bundle:
FORM = (rf'{{"version":1,"header":{H},"transaction":{PART}(,"receipt":{PART}(,"log":{{"position":{N},'
    rf'"after":{N}}})?)?,"status":("linked","anchor":{{"number":{N},"hash":{H},"by":"headers"|'
    rf'"anchored","anchor":{{"hash":{H},"by":"accumulator"),"path":\[(?:{H}(?:,{H})*)?\]}}}}\n?')
raw = lambda text: bytes.fromhex(text[2:])
keccak = lambda data: Crypto.Hash.keccak.new(digest_bits=256, data=data).digest()
def need(holds, why):
    if not holds: raise ValueError(why)
def rlp(data, at=0):  # An item is bytes, or a list of items. Hashes bind all that is read here.
    while at < len(data):
        head, size, first = *((1, data[at] % 64) if data[at] > 127 else (0, 1)), data[at]
        if size > 55: head, size = size - 54, int.from_bytes(data[at + 1 : at + size - 54], "big")
        item, at = data[at + head : at + head + size], at + head + size
        yield list(rlp(item)) if first > 191 else item
def block(data): return keccak(data), int.from_bytes(next(rlp(data))[8], "big"), next(rlp(data))
def include(index, part, root):
    key = index.to_bytes((index.bit_length() + 7) // 8, "big").hex()
    path = key if 0 < index < 128 else f"{128 + len(key) // 2:x}{key}"
    nodes, node, is_leaf = [raw(node) for node in part["proof"]], root, False
    while not is_leaf:  # A parent has its child's hash, or a short child itself, which is a list.
        if isinstance(node, bytes):
            need(nodes and keccak(nodes[0]) == node, "a node is missing or has another hash")
            node = next(rlp(nodes.pop(0)))
        if len(node) == 2: partial, node = node[0].hex(), node[1]
        else: partial, node = "1" + path[0], node[int(path[0], 16)]
        is_leaf, partial = partial[0] in "23", partial[1 if partial[0] in "13" else 2 :]
        need(path.startswith(partial) and part["index"] == index, "it leads to another index")
        path = path[len(partial) :]
    need((path, nodes, node) == ("", [], raw(part["rlp"])), "it does not end at these bytes")
def verify(text, trusted):  # Names each step before it is done.
    need(len(text) <= 8 << 20 and re.fullmatch(FORM, text.decode()), "not the form of a bundle")
    anchor, index = (bundle := json.loads(text))["anchor"], bundle["transaction"]["index"]
    yield "header hash"
    hash, number, head = block(raw(bundle["header"]))
    for name, root in zip(filter(bundle.get, ["transaction", "receipt"]), head[4:]):
        yield f"{name} 0x{keccak(raw(bundle[name]['rlp'])).hex()} at index {index} of block {number}"
        include(index, bundle[name], root)
    if log := bundle.get("log"):
        *_, (*_, logs) = rlp(raw(bundle["receipt"]["rlp"]))  # Behind its type, if it has one.
        yield f"log {log['position']}: " + json.dumps(logs[log["position"]], default=bytes.hex)
        need(len(logs) == sum(log.values()) + 1, "there are more or fewer logs")
    yield f"way from block {number}, 0x{hash.hex()}, to the anchor by {anchor['by']}"
    sides = number % 8192 * 2 + (number // 8192 << 15)  # Of leaf number % 8192 of an epoch's tree.
    for at, part in enumerate(map(raw, anchor["path"])):
        if "number" in anchor:
            need(next(rlp(part))[0] == hash, f"header {at} names another parent")
            hash, number, _ = block(part)
        else: hash = hashlib.sha256(part + hash if sides >> at & 1 else hash + part).digest()
    reached = f"{number if 'number' in anchor else 'accumulator'}:0x{hash.hex()}"
    yield f"anchor {reached}"
    need(reached == f"{anchor.get('number', 'accumulator')}:{anchor['hash']}", "it is another one")
    need(reached in (trusted or [reached]), "you do not trust it, but " + " and ".join(trusted))
if __name__ == "__main__":
    try:
        for step in verify(open(sys.argv[1], "rb").read(), sys.argv[2:]): print("checking", step)
    except Exception as error: sys.exit(f"refused at {globals().get('step', 'text')}: {error}")
    print("proven by", step, "" if sys.argv[2:] else "if it is canonical, which you have to know")
