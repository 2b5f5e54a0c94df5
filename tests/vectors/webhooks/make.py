"""Prints webhook deliveries that the published Python client signed, with its verdict on each, as JSON.

Run with an interpreter that has sandboxer-sdk 0.1.1. The output is from_python.json, byte for byte.

`python` is the client's verdict. `ours` is what the Rust SDK is to say: `ok`, or the name of its error. They differ only where
`why` gives the reason.
"""

import hashlib
import hmac
import json
import sys

import sandboxer

AT = 1767225600
SECRET = "whsec_" + "0123456789abcdef" * 4
OLD = "whsec_" + "fedcba9876543210" * 4
EVENT = {
    "id": "evt_" + "0" * 31 + "1",
    "type": "sandbox.ready",
    "createdAt": "2026-01-01T00:00:00.000Z",
    "data": {
        "sandbox": {"id": "bx_23456789", "name": "demo"},
        "previousState": "provisioning",
        "state": "ready",
    },
}
PLAIN = json.dumps(EVENT, separators=(",", ":"))

vectors = []


def written(raw):
    """A body that is text as text, any other in hexadecimal."""
    try:
        return {"body": raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"body_hex": raw.hex()}


def add(name, headers, body=PLAIN, secrets=(SECRET,), now=AT, tolerance=300, ours="ok", why=None):
    raw = body.encode("utf-8") if isinstance(body, str) else body
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    python = sandboxer.verify_webhook_headers(
        raw, dict(pairs), list(secrets), tolerance_seconds=tolerance, now=now
    )
    if python:
        try:
            event = sandboxer.construct_event(raw, dict(pairs), list(secrets), tolerance_seconds=tolerance, now=now)
            event = {"id": event.id, "type": event.type, "sandbox": event.data.sandbox.id, "name": event.data.sandbox.name}
        except sandboxer.WebhookVerificationError:
            event = None
    else:
        event = None
    if python != (ours == "ok") and why is None:
        sys.exit(f"{name}: the client says {python}, expected of ours is {ours}")
    vectors.append(
        {
            "name": name,
            "secrets": list(secrets),
            "headers": [list(pair) for pair in pairs],
            **written(raw),
            "now": now,
            "tolerance": tolerance,
            "python": python,
            "event": event,
            "ours": ours,
            **({"why": why} if why else {}),
        }
    )


def signed(body=PLAIN, secret=SECRET, at=AT):
    return sandboxer.sign_webhook(body, secret, timestamp=at)


def one(value):
    return {"Sandboxer-Signature": value}


def separate(delivery="evt_1", body=PLAIN, secret=SECRET, at=AT, family="X-Sandboxer"):
    """The client verifies this scheme and does not sign it, so the signature is made here and the verdict is the client's."""
    raw = body.encode("utf-8") if isinstance(body, str) else body
    text = f"{delivery or ''}.{at}.".encode() + raw
    headers = {f"{family}-Delivery": delivery} if delivery is not None else {}
    headers[f"{family}-Timestamp"] = str(at)
    headers[f"{family}-Signature"] = "v1=" + hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
    return headers


good = signed()
digest = good.split("v1=")[1]
old_digest = signed(secret=OLD).split("v1=")[1]

# Bodies: signed as they are written, however that is.
add("plain", one(good))
for name, body in {
    "indented": json.dumps(EVENT, indent=4),
    "odd spacing": PLAIN.replace(":", " :\t").replace(",", "\r\n,  "),
    "keys in another order": json.dumps(dict(reversed(EVENT.items())), separators=(",", ":")),
    "trailing newline": PLAIN + "\n",
    "unicode escapes": PLAIN.replace("demo", "\\u0064\\u00e9mo \\ud83d\\ude80 \\/"),
    "unicode as it is": PLAIN.replace("demo", "d\u00e9mo \U0001f680 \u65e5\u672c"),
    "decomposed unicode": PLAIN.replace("demo", "de\u0301mo"),
    "a key twice": PLAIN.replace('"name"', '"name":"first","name"'),
    "unknown fields": PLAIN[:-1] + ',"attempt":2,"more":{"x":[null,1.5e3]}}',
    "a long name": PLAIN.replace("demo", "n" * 600),
}.items():
    add(f"body: {name}", one(signed(body)), body)
    add(f"body: {name}, separate headers", separate(body=body), body)
add("body: not JSON", one(signed("not json")), "not json")
add("body: empty", one(signed("")), "")
add("body: bytes that are no text", one(signed(b"\xff\x00\xfe")), b"\xff\x00\xfe")
add("body: written again with other spacing", one(good), json.dumps(EVENT), ours="NoMatchingSignature")
add("body: written again with sorted keys", one(good), json.dumps(EVENT, sort_keys=True, separators=(",", ":")), ours="NoMatchingSignature")
add("body: escapes decoded", one(signed(PLAIN.replace("demo", "d\\u00e9mo"))), PLAIN.replace("demo", "d\u00e9mo"), ours="NoMatchingSignature")
add("body: a newline more", one(good), PLAIN + "\n", ours="NoMatchingSignature")
add("body: cut", one(good), PLAIN[:-1], ours="NoMatchingSignature")

# Secrets.
add("rotation: the new of two secrets", one(good), secrets=(SECRET, OLD))
add("rotation: the old of two secrets", one(signed(secret=OLD)), secrets=(SECRET, OLD))
add("rotation: two signatures, we know the new secret", one(f"{good},v1={old_digest}"))
add("rotation: two signatures, we know the old secret", one(f"{good},v1={old_digest}"), secrets=(OLD,))
add("rotation: two and two", one(f"t={AT},v1={old_digest},v1={digest}"), secrets=(SECRET, OLD))
add("rotation: separate headers, two signatures", {**separate(), "X-Sandboxer-Signature": f"v1={'0' * 64}, {separate()['X-Sandboxer-Signature']}"})
add("secret: another one", one(signed(secret=OLD)), ours="NoMatchingSignature")
add("secret: without its prefix", one(signed(secret=SECRET.removeprefix("whsec_"))), ours="NoMatchingSignature")
add("secret: of any length and letters", one(signed(secret="pass w\u00f6rt")), secrets=("pass w\u00f6rt",))
add("secret: longer than a block of the hash", one(signed(secret="k" * 200)), secrets=("k" * 200,))
add("secret: no secret", one(good), secrets=(), ours="NoSecret")
add("secret: an empty one", one(good), secrets=("",), ours="NoSecret")
add("secret: an empty one among others", one(good), secrets=(SECRET, ""), ours="NoSecret", why="an empty secret in a list is a mistake that would show only at the next rotation")

# Time.
for now in (AT - 300, AT - 1, AT + 1, AT + 299.5, AT + 300):
    add(f"time: now {now - AT:+}", one(good), now=now)
    add(f"time: now {now - AT:+}, separate headers", separate(), now=now)
for now in (AT + 300.5, AT + 301, AT + 86400 * 365):
    add(f"time: now {now - AT:+}", one(good), now=now, ours="TooOld")
    add(f"time: now {now - AT:+}, separate headers", separate(), now=now, ours="TooOld")
for now in (AT - 300.5, AT - 301, 0):
    add(f"time: now {now - AT:+}", one(good), now=now, ours="TooNew")
add("time: narrow, at its edge", one(good), now=AT + 5, tolerance=5)
add("time: narrow, past its edge", one(good), now=AT + 6, tolerance=5, ours="TooOld")
add("time: zero, this second", one(good), tolerance=0)
add("time: zero, the next second", one(good), now=AT + 1, tolerance=0, ours="TooOld")
add("time: none", one(good), now=0, tolerance=None)
add("time: signed in 1970", one(signed(at=0)), now=300)
add("time: a leading zero", one(good.replace("t=", "t=0")))
for text in ("", "NaN", "nan", "inf", "-inf", "1e9", f"{AT}.0", "0x10", "now", "t"):
    add(f"time: t={text!r}", one(f"t={text},v1={digest}"), ours="BadHeader")
    add(f"time: separate {text!r}", {**separate(), "X-Sandboxer-Timestamp": text}, ours="BadHeader" if text else "MissingHeader")
add("time: a sign", one(f"t=+{AT},v1={digest}"), ours="BadHeader", why="a number of seconds is digits alone")
add("time: grouped digits", one(f"t=1_767_225_600,v1={digest}"), ours="BadHeader", why="a number of seconds is digits alone")
add("time: before 1970", one(signed(at=-1)), now=0, ours="BadHeader", why="a number of seconds is digits alone")
add("time: another than was signed", one(f"t={AT + 1},v1={digest}"), ours="NoMatchingSignature")
add("time: twice", one(f"t=1,{good}"), ours="DuplicateHeader", why="which of two times counts would be a guess")
add("time: twice, the good one first", one(f"{good},t=1"), ours="DuplicateHeader")
add("time: missing", one(f"v1={digest}"), ours="BadHeader")

# Signatures.
for length in (0, 1, 8, 32, 63):
    add(f"signature: its first {length} digits", one(f"t={AT},v1={digest[:length]}"), ours="NoMatchingSignature")
add("signature: one digit more", one(good + "0"), ours="NoMatchingSignature")
add("signature: written twice in a row", one(good + digest), ours="NoMatchingSignature")
add("signature: cut in two", one(f"t={AT},v1={digest[:32]},v1={digest[32:]}"), ours="NoMatchingSignature")
add("signature: its last digit changed", one(good[:-1] + ("0" if good[-1] != "0" else "1")), ours="NoMatchingSignature")
add("signature: no hexadecimal", one(f"t={AT},v1={'z' * 64}"), ours="NoMatchingSignature")
add("signature: there twice", one(f"{good},v1={digest}"))
add("signature: a wrong one first", one(f"t={AT},v1={'0' * 64},v1={digest}"))
add("signature: an empty one first", one(f"t={AT},v1=,v1={digest}"))
add("signature: upper case", one(f"t={AT},v1={digest.upper()}"))
add("signature: upper case, separate headers", {k: "v1=" + v[3:].upper() if k.endswith("Signature") else v for k, v in separate().items()})
add("signature: another version only", one(f"t={AT},v2={digest}"), ours="BadHeader")
add("signature: the version in upper case", one(f"t={AT},V1={digest}"), ours="BadHeader")
add("signature: other versions beside it", one(f"t={AT},v0=abc,v2={digest},v1={digest}"))
add("signature: parts that mean nothing", one(f"t={AT},,x,=,v1={digest},"))
add("signature: spaces between parts", one(f" t={AT} ,  v1={digest} "))
add("signature: the time last", one(f"v1={digest},t={AT}"))
add("signature: missing", one(f"t={AT}"), ours="BadHeader")
add("signature: separate, without v1", {**separate(), "X-Sandboxer-Signature": separate()["X-Sandboxer-Signature"][3:]}, ours="BadHeader")
add("signature: separate, its first half", {k: v[:35] if k.endswith("Signature") else v for k, v in separate().items()}, ours="NoMatchingSignature")

# Headers.
add("headers: lower case", {k.lower(): v for k, v in one(good).items()})
add("headers: upper case", {k.upper(): v for k, v in one(good).items()})
add("headers: separate, lower case", {k.lower(): v for k, v in separate().items()})
add("headers: separate, upper case", {k.upper(): v for k, v in separate().items()})
add("headers: others around it", [("Content-Type", "application/json"), *one(good).items(), ("X-Forwarded-For", "::1")])
add("headers: none", {}, ours="MissingHeader")
add("headers: others only", {"Content-Type": "application/json"}, ours="MissingHeader")
add("headers: separate, without the delivery, signed without", separate(delivery=None))
add("headers: separate, without the delivery, signed with", {k: v for k, v in separate().items() if "Delivery" not in k}, ours="NoMatchingSignature")
add("headers: separate, another delivery", {**separate(), "X-Sandboxer-Delivery": "evt_2"}, ours="NoMatchingSignature")
add("headers: separate, a delivery with a dot", separate(delivery="evt.1"), ours="BadHeader", why="a dot lets a signed text be cut up in more than one way")
add("headers: separate, without the time", {k: v for k, v in separate().items() if "Timestamp" not in k}, ours="MissingHeader")
add("headers: separate, without the signature", {k: v for k, v in separate().items() if "Signature" not in k}, ours="MissingHeader")
add("headers: there twice", [("sandboxer-signature", f"t={AT},v1=00"), ("Sandboxer-Signature", good)], ours="DuplicateHeader")
add("headers: both schemes, both good", {**separate(), **one(good)})
add("headers: both schemes, the separate one bad", {**separate(secret=OLD), **one(good)})
add("headers: both schemes, the single one bad", {**separate(), **one(f"t={AT},v1={'0' * 64}")}, ours="NoMatchingSignature")
add("headers: both schemes, the single one empty", {**separate(), **one("")})
add("headers: one scheme's signature in the other", {**separate(), "X-Sandboxer-Signature": f"v1={digest}"}, ours="NoMatchingSignature")

# The client knows no other spelling of the separate headers, so these are signed by the rule alone.
add("boat: separate headers", separate(family="X-Ascii"), why="boat's names are known here")
add("boat: another delivery", {**separate(family="X-Ascii"), "X-Ascii-Delivery": "evt_2"}, ours="NoMatchingSignature")

print("[\n" + ",\n".join(json.dumps(vector) for vector in vectors) + "\n]")
