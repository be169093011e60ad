"""Verifies a proof of a transaction or receipt: verify.py BUNDLE|- [N:HASH | accumulator:ROOT]"""
import hashlib, json, re, struct, sys
H, N = '"0x(?:[0-9a-f]{2})+"', "(?:0|[1-9][0-9]*)"  # Bytes and numbers have one spelling,
PART = rf'{{"index":{N},"rlp":{H},"proof":\[{H}(?:,{H})*\]}}'  # and so has a bundle:
FORM = (rf'{{"version":1,"header":{H},"transaction":{PART}(,"receipt":{PART}(,"log":{{"position":{N},'
    rf'"after":{N}}})?)?,"status":("linked","anchor":{{"number":{N},"hash":{H},"by":"headers"|'
    rf'"anchored","anchor":{{"hash":{H},"by":"accumulator"),"path":\[(?:{H}(?:,{H})*)?\]}}}}\n?')
def keccak(data):  # Keccak-256. hashlib has only SHA-3, which pads differently.
    s, pad = [0] * 25, 136 - len(data) % 136
    data += (1 | 0x80 << 8 * (pad - 1)).to_bytes(pad, "little")
    rotate = lambda lane, by: (lane << by | lane >> 64 - by) & (1 << 64) - 1
    for at in range(0, len(data), 136):
        s, lfsr = [a ^ b for a, b in zip(s, struct.unpack_from("<17Q", data, at) + (0,) * 8)], 1
        for _ in range(24):
            c = [s[x] ^ s[x + 5] ^ s[x + 10] ^ s[x + 15] ^ s[x + 20] for x in range(5)] * 2
            s = [s[i] ^ c[i % 5 + 4] ^ rotate(c[i % 5 + 1], 1) for i in range(25)]
            i, lane = 1, s[1]
            for t in range(1, 25):
                i = i // 5 + (2 * (i % 5) + 3 * (i // 5)) % 5 * 5
                lane, s[i] = s[i], rotate(lane, t * (t + 1) // 2 % 64)
            s = [s[i] ^ ~s[i - i % 5 + (i + 1) % 5] & s[i - i % 5 + (i + 2) % 5] for i in range(25)]
            for bit in range(7):
                s[0], lfsr = s[0] ^ (lfsr & 1) << 2**bit - 1, lfsr << 1 ^ (lfsr >> 7) * 0x171
    return struct.pack("<4Q", *s[:4])
def need(holds, why):
    if not holds: raise ValueError(why)
raw = lambda text: bytes.fromhex(text[2:])
def rlp(data):  # Payload and encoding of each item. Hashes bind all that is read here.
    while data:
        head, size = (1, data[0] % 64) if data[0] > 127 else (0, 1)
        if size > 55: head, size = size - 54, int.from_bytes(data[1 : size - 54], "big")
        yield data[head : head + size], data[: head + size]
        data = data[head + size :]
def fields(data): return [item for payload, _ in rlp(data) for item in rlp(payload)]
def block(data): return keccak(data), int.from_bytes(fields(data)[8][0], "big"), fields(data)
def include(index, part, root):  # A node has the hash that its parent has, or stands in its parent.
    key = index.to_bytes((index.bit_length() + 7) // 8, "big").hex()
    path = key if 0 < index < 128 else f"{128 + len(key) // 2:x}{key}"
    nodes, node, is_leaf = [raw(node) for node in part["proof"]], b"", False
    while not is_leaf:
        if node[:1] < b"\xc0": need(keccak(node := nodes.pop(0)) == root, "a node has another hash")
        node = fields(node)
        if len(node) == 2: partial, (root, node) = node[0][0].hex(), node[1]
        else: partial, (root, node) = "1" + path[0], node[int(path[0], 16)]
        is_leaf, partial = partial[0] in "23", partial[1 if partial[0] in "13" else 2 :]
        need(path.startswith(partial) and part["index"] == index, "it leads to another index")
        path = path[len(partial) :]
    need((path, nodes, root) == ("", [], raw(part["rlp"])), "it does not end at these bytes")
def verify(text, trusted):  # Names each step before it is done.
    need(re.fullmatch(FORM, text), "this is not the one form of a bundle")
    anchor, index = (bundle := json.loads(text))["anchor"], bundle["transaction"]["index"]
    yield "header hash"
    hash, number, head = block(raw(bundle["header"]))
    for name, root in ("transaction", head[4][0]), ("receipt", head[5][0]):
        if name in bundle:
            yield f"{name} path to index {index} of block {number}: {hash.hex()}"
            include(index, bundle[name], root)
    if "log" in bundle:
        yield f"log at position {bundle['log']['position']} of the receipt"
        logs = fields(fields(raw(bundle["receipt"]["rlp"]).lstrip(bytes(range(128))))[3][1])
        need(len(logs) == sum(bundle["log"].values()) + 1, "there are more or fewer logs")
    yield f"way to the anchor by {anchor['by']}"
    for at, part in enumerate(raw(part) for part in anchor["path"]):
        if "number" in anchor:
            need(fields(part)[0][0] == hash, f"header {at} names another parent")
            hash, number, head = block(part)
        else:  # The sides are those of leaf `number % 8192` of epoch `number // 8192`.
            is_right = (number % 8192 * 2 + (number // 8192 << 15)) >> at & 1
            hash = hashlib.sha256(part + hash if is_right else hash + part).digest()
    reached = f"{number if 'number' in anchor else 'accumulator'}:0x{hash.hex()}"
    need(reached == f"{anchor.get('number', 'accumulator')}:{anchor['hash']}", f"it is {reached}")
    yield f"anchor {reached}: {'trusted' if trusted else 'canonical? You have to know that'}"
    need(reached in (trusted or [reached]), "this is none that you trust")
if __name__ == "__main__":
    try:
        step, (_, name, *trusted) = "text", sys.argv
        text = open(0 if name == "-" else name, "rb").read().decode()
        for step in verify(text, trusted): print("checking", step)
    except Exception as error: sys.exit(f"refused at {step}: {error}")
    print("proven")
