"""What a pattern cannot say of a value that was sent: each takes the world and the value, and says whether it is so."""

import base64
import binascii
import datetime
import re

# Names that the service keeps for itself; the document has them in `x-service`.
RESERVED = {
    "AGENT_ID",
    "ENVIRONMENT_ID",
    "PRODUCT_MODE",
    "SANDBOXER_API_URL",
    "SANDBOXER_CLI_TOKEN",
    "SANDBOXER_ID",
    "SANDBOXER_TOKEN",
    "SERVICE_PREVIEW_TOKEN",
}
# The headers that whoever sends a request writes.
OWN_HEADERS = {
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}


def _environments(world):
    return world.call("GET", "/environments")["environments"]


def taken_subdomain(world, value):
    cursor, found = "", set()
    while cursor is not None:
        page = world.call("GET", f"/sandboxes?limit=200{cursor}")
        found |= {row["subdomain"] for row in page["sandboxes"]}
        cursor = f"&cursor={page['pageInfo']['nextCursor']}" if page["pageInfo"]["hasMore"] else None
    return value in found


def taken_environment(world, value):
    return value in {row["name"] for row in _environments(world)}


def unknown_environment(world, value):
    return not any(value in (row["id"], row["name"]) for row in _environments(world))


def unknown_environments(world, value):
    return any(unknown_environment(world, one) for one in value)


def default_environment(world, value):
    return any(row["isDefault"] for row in _environments(world) if row["id"] == value)


def unknown_sandboxes(world, value):
    return any(not world.call("GET", f"/sandboxes/{one}", expect=(200, 404))["ok"] for one in value)


def archived(world, value):
    return world.call("GET", f"/sandboxes/{value}")["sandbox"]["state"] == "archived"


def personal(world, value):
    return world.call("GET", f"/sandboxes/{value}")["sandbox"].get("team") is None


def unknown_actions(world, value):
    return not set(value) <= world.actions


def over_a_year(world, value):
    return int(value.rstrip("dh")) * {"d": 86400, "h": 3600}.get(value[-1], 1) > 365 * 86400


def odd_header(world, value):
    """Some of the names of a map are none of a header, twice the same, or set by who sends."""
    names = [name.lower() for name in value]
    is_name = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+", re.ASCII).fullmatch
    return len(names) != len(set(names)) or any(name in OWN_HEADERS or not is_name(name) for name in names)


def bad_variable(world, value):
    """A name, or some of the names of a map."""
    names = [value] if isinstance(value, str) else value
    return any(not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name, re.ASCII) or name in RESERVED for name in names)


def outside_path(world, value):
    """A path that leads nowhere inside the home folder: out of it, through a file, or by a name that no file can have."""
    parts = value.split("/")
    away = value.startswith("/") and not re.match(r"/(home/user|tmp)(/|$)", value)
    return away or ".." in parts or any(len(part.encode()) > 255 for part in parts)


def outside_secret_path(world, value):
    """A path, or some of the paths of a list of files."""
    paths = [value] if isinstance(value, str) else [file["path"] for file in value]
    names = [name for path in paths for name in path.split("/")]
    is_off = any(name in ("", ".", "..") or len(name.encode()) > 255 for name in names)
    return is_off or len(paths) != len(set(paths)) or any(len(path.encode()) > 4095 for path in paths)


def no_time(world, value):
    try:
        return not 0 <= float(value) < 9e12
    except ValueError:
        pass
    try:
        return datetime.datetime.fromisoformat(value).tzinfo is None
    except ValueError:
        return True


def no_base64(world, value):
    try:
        return base64.b64encode(base64.b64decode(value, validate=True)).decode() != value
    except (binascii.Error, ValueError):
        return True
