"""The inverted index of a content node: field indexes, their merging and their reading."""

from paperwasp.storage.index.segments import IndexedField
from paperwasp.storage.index.snapshot import IndexSnapshot
from paperwasp.storage.index.text_index import TextIndex

__all__ = ["IndexSnapshot", "IndexedField", "TextIndex"]
