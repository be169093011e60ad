"""Holds what a client gives against what was expected.

Knows: that libraries give numbers as integers, bytes as bytes and addresses with a checksum.
Never knows: which library it was.
"""

import json
import sys
from collections.abc import Mapping

ABSENT_HASH = "0x" + "11" * 32


def plain(value):
    """A library's value in the form of the wire."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, bytes):
        return "0x" + bytes(value).hex()
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value]


class Agreement:
    """Every member that was expected must be there with its value."""

    def __init__(self):
        self.compared = 0
        self.differences = 0

    def hold(self, path, found, wanted):
        if isinstance(wanted, dict) and isinstance(found, dict):
            for name, item in wanted.items():
                self.hold(f"{path}.{name}", found.get(name), item)
        elif isinstance(wanted, list) and isinstance(found, list) and len(found) == len(wanted):
            for index, item in enumerate(wanted):
                self.hold(f"{path}.{index}", found[index], item)
        else:
            self.compared += 1
            if found != wanted:
                self.differences += 1
                if self.differences <= 20:
                    print(f"{path}: found {found}, expected {wanted}")

    def conclude(self):
        print(f"{self.compared} values compared, {self.differences} differ")
        sys.exit(0 if self.differences == 0 and self.compared > 0 else 1)


def read_expected(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
