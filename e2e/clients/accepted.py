"""Holds the requests that a server's log calls answered against those whose answers have come.

usage: accepted.py LOG SKIPPED ANSWERED_FILE

The first SKIPPED lines about requests are of another load. A request over WebSocket has no id of its
client's in the log, so those are counted.
"""

import json
import sys

log, skipped, file = sys.argv[1:]
with open(file) as lines:
    answered = {line.strip() for line in lines}
with open(log) as lines:
    fields = [json.loads(line)["fields"] for line in lines if line.startswith("{")]
accepted = [field["request_id"] for field in fields if field.get("message") == "answered"][int(skipped):]
named = {name for name in accepted if "-" in name}
unnamed = len(accepted) - len(named)
over_socket = sum(name.startswith("socket") for name in answered)
lost = sorted(named - answered)
lost += ["over WebSocket"] * max(unnamed - over_socket, 0)
for name in lost[:20]:
    print(f"lost: {name}")
print(f"{len(accepted)} accepted, {len(lost)} lost")
sys.exit(1 if lost or not named or not unnamed else 0)
