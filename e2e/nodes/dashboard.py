"""Asks Prometheus every query of a dashboard until each returns data, or looks at its alert rules.

dashboard.py PROMETHEUS DASHBOARD | dashboard.py PROMETHEUS --rules
"""

import json
import math
import sys
import time
import urllib.parse
import urllib.request

TRIES = 90
# Rules about the disk of the machine that the test runs on.
OF_THE_DISK = {"QuipuDiskLow", "QuipuDiskFillsUp"}
# What Grafana puts in the place of its variables.
VARIABLES = {"$__rate_interval": "10s", "$instance": ".*"}


def get(path):
    with urllib.request.urlopen(sys.argv[1] + path, timeout=10) as answer:
        return json.load(answer)["data"]


def values(query):
    """The numbers that a query returns."""
    data = get("/api/v1/query?" + urllib.parse.urlencode({"query": query}))
    found = [float(series["value"][1]) for series in data["result"]]
    return [value for value in found if not math.isnan(value)]


def rules():
    for _ in range(TRIES):
        groups = get("/api/v1/rules")["groups"]
        found = [rule for group in groups for rule in group["rules"]]
        if found and all(rule["health"] != "unknown" for rule in found):
            break
        time.sleep(1)
    for rule in found:
        print(rule["name"], rule["health"], rule["state"], rule.get("lastError", ""))
    # A rule that waits would fire later. The machine's disk may be small, whatever runs on it.
    quiet = {True: ("inactive", "pending"), False: ("inactive",)}
    return bool(found) and all(
        rule["health"] == "ok" and rule["state"] in quiet[rule["name"] in OF_THE_DISK]
        for rule in found
    )


def queries():
    with open(sys.argv[2], encoding="utf-8") as file:
        panels = json.load(file)["panels"]
    wanted = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    count = len(wanted)
    for _ in range(TRIES):
        left = []
        for query in wanted:
            asked = query
            for variable, value in VARIABLES.items():
                asked = asked.replace(variable, value)
            if not values(asked):
                left.append(query)
        wanted = left
        if not wanted:
            break
        time.sleep(1)
    for query in wanted:
        print("without data:", query)
    print(f"{count} queries, {len(wanted)} without data")
    return count > 0 and not wanted


sys.exit(0 if (rules() if sys.argv[2] == "--rules" else queries()) else 1)
