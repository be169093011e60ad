"""A folder over HTTP, ranges of files included, each response later by a fixed time: source.py FOLDER MILLISECONDS.

Prints its port. GET /.log tells, as JSON, what was asked for since it was asked last: the times of the
request and of its response (CLOCK_MONOTONIC), the path, and the range. GET /.delay/MILLISECONDS changes the
time that is added.
"""

import asyncio
import json
import os
import sys
import time

folder = os.path.realpath(sys.argv[1])
added = float(sys.argv[2]) / 1e3
asked = []
opened = {}


def file_of(path):
    """The descriptor and length of a file, and None where there is none. Objects never change but for the index."""
    if path in opened:
        return opened[path]
    name = os.path.realpath(folder + path)
    if not name.startswith(folder + "/") or not os.path.isfile(name):
        return None
    descriptor = os.open(name, os.O_RDONLY)
    opened[path] = descriptor, os.fstat(descriptor).st_size
    return opened[path]


def bounds(header, length):
    """First byte and the one behind the last, of bytes=A-B, bytes=A- or bytes=-N."""
    first, last = header.removeprefix("bytes=").split("-")
    if not first:
        return max(0, length - int(last)), length
    return int(first), min(int(last) + 1, length) if last else length


class Connection(asyncio.Protocol):
    def __init__(self):
        self.received = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, self.received = self.received.split(b"\r\n\r\n", 1)
            self.answer(head.decode("latin-1").split("\r\n"))

    def answer(self, lines):
        global added, asked
        method, path, _ = lines[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if path == "/.log":
            body, asked = json.dumps(asked).encode(), []
            return self.send("200 OK", [], body)
        if path.startswith("/.delay/"):
            added = float(path.removeprefix("/.delay/")) / 1e3
            return self.send("200 OK", [], b"")
        entry = [time.monotonic(), None, path, None]
        asked.append(entry)
        asyncio.get_running_loop().call_later(added, self.respond, entry, method, headers.get("range"))

    def respond(self, entry, method, wanted):
        if self.transport.is_closing():
            return
        file = file_of(entry[2])
        if file is None:
            self.send("404 Not Found", [], b"")
        else:
            descriptor, length = file
            first, end = bounds(wanted, length) if wanted else (0, length)
            status = "206 Partial Content" if wanted else "200 OK"
            more = ["Last-Modified: Wed, 18 Nov 2026 00:00:00 GMT", "Accept-Ranges: bytes"]
            if wanted:
                more.append(f"Content-Range: bytes {first}-{end - 1}/{length}")
                entry[3] = [first, end]
            if method == "HEAD":
                self.send(status, more, b"", end - first)
            else:
                self.send(status, more, os.pread(descriptor, end - first, first))
        entry[1] = time.monotonic()

    def send(self, status, more, body, length=None):
        length = len(body) if length is None else length
        head = [f"HTTP/1.1 {status}", f"Content-Length: {length}", *more, "", ""]
        self.transport.write("\r\n".join(head).encode() + body)


async def main():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
