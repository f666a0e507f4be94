"""The inverted index of a content node: segments, their merging and their reading."""

from paperwasp.index.snapshot import IndexSnapshot
from paperwasp.index.text_index import IndexedField, TextIndex

__all__ = ["IndexSnapshot", "IndexedField", "TextIndex"]
