"""The token of a request: `Authorization: Bearer TOKEN`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SCHEME: Final = "bearer "


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """The token; None: the request has none. Of several header fields the tokens are one text with commas, which is
    that of no key."""
    value = headers.get("authorization")
    if value is None or value[: len(_SCHEME)].lower() != _SCHEME:
        return None
    return value[len(_SCHEME) :].strip() or None
