"""A query as somebody types it: words to search for, or YQL."""

from __future__ import annotations

from typing import Final

_USER_QUERY: Final = "select * from sources * where userQuery()"


def parameters_of_text(text: str) -> dict[str, str]:
    """The parameters of a search: `select …` is YQL, all else are words for `userQuery()`."""
    is_yql = text.split(None, 1)[:1] != [] and text.split(None, 1)[0].lower() == "select"
    return {"yql": text} if is_yql else {"yql": _USER_QUERY, "query": text}
