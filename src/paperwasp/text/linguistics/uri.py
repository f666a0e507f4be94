"""URIs cut into their parts, each of which is a text of its own.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#uri, searchlib/src/vespa/searchlib/util/url.cpp
Differs: `-` and `_` separate tokens here, so that a URI of a query and one of a document are cut alike.
"""

from __future__ import annotations

import re
from typing import Final

from paperwasp.base.patterns import compile_later

ALL: Final = "all"
"""Stands for the whole URI, without a port that goes without saying."""
PARTS: Final = ("scheme", "hostname", "port", "path", "query", "fragment")
HOST: Final = "host"
"""Another name of the host name."""

_SCHEME: Final = compile_later(r"([A-Za-z0-9+.-]*):")
_HOST: Final = compile_later(r"(?://)?([A-Za-z0-9.+-]*)(?::([0-9]*))?")
_REST: Final = compile_later(
    r"([\w.!~*'()%:@&=+$,/;-]*)(?:\?([\w.!~*'()%:@&=+$,/;?-]*))?(?:#([\w.!~*'()%:@&=+$,/;?-]*))?", re.ASCII
)
_USUAL_PORTS: Final = ("80", "443")


def uri_parts(text: str) -> dict[str, str]:
    """The parts of a URI by name, `all` among them; an empty one where there is none.

    Only `http` URIs, and what begins with `www.`, have a host; only they, and what has no scheme, a path and more.
    """
    scheme, at = "", 0
    is_www = text[:4].lower() == "www."
    if not is_www and (found := _SCHEME.match(text)):
        scheme, at = found[1], found.end()
    is_http = scheme[:4].lower() == "http"
    host = port = ""
    if (is_www or (is_http and text.startswith("//", at))) and (found := _HOST.match(text, at)):
        host, port, at = found[1], found[2] or "", found.end()
    rest = ["", "", ""]
    if (not scheme or is_http) and (found := _REST.match(text, at)):
        rest, at = [part or "" for part in found.groups()], found.end()
    parts = dict(zip(PARTS, (scheme, host, "" if port in _USUAL_PORTS else port, *rest), strict=True))
    return parts | {ALL: " ".join([*parts.values(), text[at:]])}
