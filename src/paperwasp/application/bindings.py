"""Bindings of filter chains: `http://*/search/*`, and which of several that fit a request is meant.

    scheme://host[:port]/path      `*` in the path stands for any characters, slashes too

The path is compared as it came, and, where it has percent signs, as it reads too: a page that is found by either must
not get past a filter by being written in another way. The scheme may be any; both are served alike. The port is one
that services.xml gives to a server. Of several that fit the strictest counts: a path without `*` at its end before one
with it, `*` alone last of all.

Vespa: https://docs.vespa.ai/en/reference/applications/services/http.html#binding
Differs: the host must be `*`: any client can say another.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass

_PATTERN: Final = compile_later(r"([^:]+)://([^:/]+)(?::(\*|[0-9]{1,5}))?/(.*)")


@dataclass(frozen=True, slots=True)
class Binding:
    """A pattern of requests."""

    text: str
    port: int | None
    """None: any."""
    parts: tuple[str, ...]
    """Of the path, behind its first slash: what stands between its stars. `()` where it is a star alone."""

    def fits(self, port: int | None, path: str) -> bool:
        """Whether a request to that path, at a server with that port in services.xml, is meant. Time: that of reading
        the path once."""
        if self.port is not None and self.port != port:
            return False
        return not self.parts or _fits(self.parts, path.removeprefix("/"))


def read_binding(text: str) -> Binding:
    """Errors: ValueError that says why."""
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text[:100]}' is no binding like http://*/search/*")
    scheme, host, port, path = found.groups()
    if scheme not in ("http", "https", "*"):
        raise ValueError(f"the scheme of the binding '{text[:100]}' must be http, https or *")
    if host != "*":
        raise ValueError(f"the host of the binding '{text[:100]}' must be *: any client can say another")
    parts = () if path == "*" else tuple(path.split("*"))
    return Binding(text, None if port in (None, "*") else int(port), parts)


def strictest_first(bindings: list[Binding]) -> list[Binding]:
    """In the order in which they are tried."""
    return sorted(bindings, key=cmp_to_key(_compare))


def _fits(parts: tuple[str, ...], path: str) -> bool:
    if len(parts) == 1:
        return path == parts[0]
    first, *middle, last = parts
    if not path.startswith(first) or not path.endswith(last) or len(path) < len(first) + len(last):
        return False
    start, end = len(first), len(path) - len(last)
    for part in middle:
        found = path.find(part, start, end)
        if found < 0:
            return False
        start = found + len(part)
    return True


def _compare(one: Binding, other: Binding) -> int:
    """Negative where `one` is the stricter."""
    return _compare_paths(one.parts, other.parts) or (one.port is None) - (other.port is None)


def _compare_paths(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    if not one or not other:
        return len(other) - len(one)
    if (one[-1] == "") != (other[-1] == ""):
        return 1 if one[-1] == "" else -1
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            return -1 if mine > theirs else 1
    return len(other) - len(one)
