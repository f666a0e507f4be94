"""JSON as the state pages print it: indented, and with blanks around colons, so that scripts find `"code" : "up"`.

Vespa: the default pretty printer of Jackson, which StateHandler.java uses (container-core).
"""

from __future__ import annotations

import orjson

from paperwasp.http.messages import JSON, Response


def pretty_response(status: int, content: object) -> Response:
    """An answer for people and for scripts that search it for a line."""
    return Response(status, (pretty_json(content) + "\n").encode(), JSON)


def pretty_json(value: object, level: int = 0) -> str:
    """Members on lines of their own, elements of arrays behind each other."""
    if isinstance(value, dict):
        if not value:
            return "{ }"
        start, end = "\n" + "  " * (level + 1), "\n" + "  " * level
        members = (f"{_dumps(str(name))} : {pretty_json(item, level + 1)}" for name, item in value.items())
        return "{" + ",".join(start + member for member in members) + end + "}"
    if isinstance(value, list | tuple):
        return "[ " + ", ".join(pretty_json(item, level) for item in value) + " ]" if value else "[ ]"
    return _dumps(value)


def _dumps(value: object) -> str:
    return orjson.dumps(value).decode()
