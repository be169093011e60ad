"""web3.py, unmodified, with an API key: in a header and in the path; and without one.

usage: keyed_web3.py URL KEY
"""

import sys

from requests import HTTPError
from web3 import Web3

url, key = sys.argv[1:]


def client(address, **headers):
    options = {"headers": {"content-type": "application/json", **headers}, "timeout": 60}
    return Web3(Web3.HTTPProvider(address, request_kwargs=options, exception_retry_configuration=None))


number = client(url, Authorization=f"Bearer {key}").eth.block_number
assert number > 0
assert client(url, **{"X-Api-Key": key}).eth.block_number == number
assert client(f"{url}/v1/{key}").eth.block_number == number
for wrong in (client(url), client(url, Authorization="Bearer qk_wrong")):
    try:
        found = wrong.eth.block_number
    except HTTPError as error:
        assert error.response.status_code == 401, error
        assert error.response.json()["error"]["message"].startswith("unauthorized"), error
    else:
        raise AssertionError(f"let in without a key: {found}")
print("web3.py is let in with a key, and not without")
