"""Every limit of embedders: of runs, texts, threads, and what is remembered."""

from __future__ import annotations

from typing import Final

BATCH_TOKENS: Final = 1024
"""Tokens of one run of a model, padding included: more are not faster, and a query may wait behind a run."""
PADDING_TOKENS: Final = 16
"""The padding of one run, in tokens: a run costs about as much as they do, …"""
PADDING_SHARE: Final = 0.05
"""… and this share of its texts' own."""
CACHE_BYTES: Final = 32 << 20
"""What one embedder remembers of the texts that came last."""
CACHE_ENTRY_BYTES: Final = 300
"""The memory of an entry beside text and value."""
TOKENS: Final = 1 << 15
"""The most tokens of one text, whatever `max-tokens` says: the memory of attention grows with its square."""
DOCUMENT_THREADS: Final = 128
"""Documents whose scripts run beside each other where they embed: most wait for one run of a model, and the more wait,
the more are of one length."""
QUERY_THREADS: Final = 16
WAITING: Final = 10_000
"""Operations that may wait for embedding before others are refused."""
TOKENIZER_FILE_BYTES: Final = 1 << 27
