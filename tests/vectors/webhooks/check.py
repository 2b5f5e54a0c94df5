"""Reads deliveries as JSON from standard input and prints, as JSON, what the published Python client says to each.

Run with an interpreter that has sandboxer-sdk 0.1.1. The answer to each is `true` when the client accepts it.
"""

import json
import sys

import sandboxer


def accepts(vector):
    return sandboxer.verify_webhook_headers(
        bytes.fromhex(vector["body_hex"]) if "body_hex" in vector else vector["body"].encode("utf-8"),
        dict(vector["headers"]),
        vector["secrets"],
        tolerance_seconds=vector["tolerance"],
        now=vector["now"],
    )


json.dump([accepts(vector) for vector in json.load(sys.stdin)], sys.stdout)
