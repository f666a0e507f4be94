"""Every limit of messages between processes (`coordination/messages/`)."""

from __future__ import annotations

from typing import Final

MESSAGE_BYTES: Final = 1 << 30
"""One message as bytes: a request, or an answer with all its hits."""
TREE_NODES: Final = 1 << 20
"""Nodes of one tree."""
TREE_DEPTH: Final = 300
"""Nodes of a tree within each other."""
INTEGER_DIGITS: Final = 1024
"""Digits of an integer beyond 64 bits, with its sign."""
