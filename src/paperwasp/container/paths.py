"""Whose path a request is for: one place for whoever answers it and for whoever checks whether it may be asked.

Paths are looked at as they came, with percent signs and all. What is not written plainly belongs to nobody.
"""

from __future__ import annotations

from typing import Final

DOCUMENT_ROOT: Final = "/document/v1/"
_SEARCH_ROOT: Final = "/search"
_EVALUATION_ROOT: Final = "/model-evaluation/v1"


def is_document(raw_path: str) -> bool:
    return raw_path.startswith(DOCUMENT_ROOT)


def is_search(raw_path: str) -> bool:
    return raw_path.startswith("/search/") or raw_path == _SEARCH_ROOT


def is_evaluation(raw_path: str) -> bool:
    return raw_path == _EVALUATION_ROOT or raw_path.startswith(_EVALUATION_ROOT + "/")
