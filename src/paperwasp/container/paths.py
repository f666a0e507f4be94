"""Whose path a request is for, and what a container says while it serves no application."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# Whose path a request is for: one place for whoever answers it and for whoever checks whether it may be asked.
#
# Paths are looked at as they came, with percent signs and all. What is not written plainly belongs to nobody.


DOCUMENT_ROOT: Final = "/document/v1/"
_SEARCH_ROOT: Final = "/search"
_EVALUATION_ROOT: Final = "/model-evaluation/v1"


def is_document(raw_path: str) -> bool:
    return raw_path.startswith(DOCUMENT_ROOT)


def is_search(raw_path: str) -> bool:
    return raw_path.startswith("/search/") or raw_path == _SEARCH_ROOT


def is_evaluation(raw_path: str) -> bool:
    return raw_path == _EVALUATION_ROOT or raw_path.startswith(_EVALUATION_ROOT + "/")


def no_application(ports: Iterable[int] = ()) -> str:
    """The message, where containers of applications listen on these other ports."""
    listed = ", ".join(map(str, sorted(ports)))
    if listed:
        return f"No application is served on this port: containers listen on {listed}, by their services.xml"
    return "No application is active yet: deploy one"
