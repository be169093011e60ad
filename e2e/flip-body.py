"""Flips one bit in the middle of the largest block body of an era1 or ere file, in place.

Both formats are e2store: entries of a type (2 bytes), a length (4 bytes) and two reserved bytes,
little-endian, each followed by as many bytes. The compressed body has type 4.
"""

import struct
import sys

COMPRESSED_BODY = 4
HEAD_BYTES = 8


def flip(path):
    with open(path, "rb") as file:
        content = bytearray(file.read())
    bodies = []
    offset = 0
    while offset < len(content):
        kind, length = struct.unpack_from("<HI", content, offset)
        if kind == COMPRESSED_BODY:
            bodies.append((length, offset + HEAD_BYTES))
        offset += HEAD_BYTES + length
    length, start = max(bodies)
    content[start + length // 2] ^= 1
    with open(path, "wb") as file:
        file.write(content)


flip(sys.argv[1])
