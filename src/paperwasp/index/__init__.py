"""The inverted index of a content node: field_indexes, their merging and their reading."""

from paperwasp.index.fields import IndexedField
from paperwasp.index.snapshot import IndexSnapshot
from paperwasp.index.text_index import TextIndex

__all__ = ["IndexSnapshot", "IndexedField", "TextIndex"]
