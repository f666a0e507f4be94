"""Vespa's two filters that let pages of other origins ask a container: what they answer, and what they add to answers.

Vespa: CorsLogic.java, CorsPreflightRequestFilter.java and CorsResponseFilter.java in jdisc-security-filters
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from paperwasp.components import FilterAnswer, RequestHead
from paperwasp.schema.files import Component

_PACKAGE: Final = "com.yahoo.jdisc.http.filter.security.cors."
PREFLIGHT: Final = _PACKAGE + "CorsPreflightRequestFilter"
ANSWERS: Final = _PACKAGE + "CorsResponseFilter"
CONFIG: Final = "jdisc.http.filter.security.cors.cors-filter"
_CLASSES: Final = (PREFLIGHT, ANSWERS)
_URL: Final = re.compile(r"config(?:#\d+)?/allowedUrls(?:#\d+)?(?:/item(?:#\d+)?)?")
_FIELDS: Final = {
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Allow-Headers": "Origin,Content-Type,Accept,Yahoo-Principal-Auth,Okta-Identity-Token,"
    "Okta-Access-Token,Okta-Refresh-Token,Vespa-Csrf-Token",
    "Access-Control-Allow-Methods": "OPTIONS,GET,PUT,DELETE,POST,PATCH",
    "Access-Control-Max-Age": "604800",
    "Vary": "*",
}


def cors_class(component: Component) -> str:
    """Which of the two a filter is; empty: none."""
    name = (component.class_name or component.id).partition(":")[0]
    return name if component.kind == "filter" and name in _CLASSES else ""


class Cors:
    """The origins that one filter allows."""

    def __init__(self, component: Component) -> None:
        urls = [text for path, text in component.settings.items() if _URL.fullmatch(path) and text.strip()]
        self._allows_all = "*" in urls
        self._verbatim = frozenset(urls)
        self._patterns = [_pattern(url) for url in urls if "*" in url]

    def fields(self, origin: str | None) -> Mapping[str, str]:
        """Return the headers of an answer to a page of that origin; None: the request names none."""
        if origin is None:
            return {}
        if self._allows_all or origin in self._verbatim or any(each.fullmatch(origin) for each in self._patterns):
            return {"Access-Control-Allow-Origin": origin, **_FIELDS}
        return _FIELDS

    def filter(self, request: RequestHead) -> FilterAnswer | None:
        """The answer to a browser that asks whether it may ask; other requests pass."""
        if request.method != "OPTIONS":
            return None
        return FilterAnswer(200, b"", headers=dict(self.fields(request.headers.get("origin"))))


@cache
def _pattern(url: str) -> re.Pattern[str]:
    """`*` is any text, all else is itself."""
    return re.compile(".*".join(map(re.escape, url.split("*"))))
