"""Changes bundles byte by byte, and has the Python example of docs/proofs.md refuse each change.

usage: changes.py BUNDLE...

Every byte of each bundle is set to other values, and removed; the processes share the places.
"""

import functools
import importlib.util
import multiprocessing
import pathlib
import sys

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "proofs" / "verify.py"


def example():
    spec = importlib.util.spec_from_file_location("verify", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Most of a changed bundle is what it was: each part is hashed once.
    module.keccak = functools.cache(module.keccak)
    return module


MODULE = example()


def reached(text):
    """The last step, which names the anchor; None if the bundle is refused."""
    step = None
    try:
        for step in MODULE.verify(text, []):
            pass
    except Exception:
        return None
    return step


def accepted_changes(job):
    """The changes of one byte that are not refused."""
    text, at = job
    own = text[at]
    others = {own ^ 1, own ^ 0x20, own ^ 0x80, ord("0"), ord("9"), ord("a"), ord(" "), ord('"')}
    changed = (text[:at] + bytes([other]) + text[at + 1 :] for other in others - {own})
    shortened = [text[:at] + text[at + 1 :]] if at + 1 < len(text) else []
    return [(at, other) for other in [*changed, *shortened] if reached(other)]


def main():
    found = 0
    with multiprocessing.Pool() as pool:
        for name in sys.argv[1:]:
            text = pathlib.Path(name).read_bytes()
            step = reached(text)
            if not step:
                sys.exit(f"{name}: refused as it is")
            jobs = ((text, at) for at in range(len(text)))
            for accepted in pool.imap_unordered(accepted_changes, jobs, chunksize=16):
                for at, other in accepted:
                    found += 1
                    print(f"{name}: byte {at}: accepted: {other[max(at - 20, 0):at + 20]}")
            print(f"{name}: {len(text)} bytes changed, {step}")
    sys.exit(1 if found else 0)


main()
