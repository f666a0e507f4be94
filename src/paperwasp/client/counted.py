"""Numbers of things, as a person says them."""

from __future__ import annotations


def counted(count: int, name: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
