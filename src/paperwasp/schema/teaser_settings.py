"""How dynamic summaries are made: what the configuration `vespa.config.search.summary.juniperrc` may say, and how the
words of a query are marked in them and in bolded texts, which `container.qr-searchers` may say.

Vespa: https://docs.vespa.ai/en/querying/document-summaries.html#dynamic-snippet-configuration
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field


class TeaserSettings(Struct, frozen=True):
    """How long a teaser is, and what it is about; names, units and defaults are those of `juniperrc`."""

    length: int = 256
    """Bytes that a teaser is to have, about."""
    max_matches: int = 3
    """Places that are shown, more while it would have less than `min_length` bytes."""
    min_length: int = 128
    prefix: bool = True
    """Whether a text without any word of the query is shown, by its beginning."""
    surround_max: int = 128
    """Bytes before and after a word of the query."""
    winsize: int = 200
    """Bytes within which words of the query count as standing together."""
    winsize_fallback_multiplier: float = 10.0
    max_match_candidates: int = 1000
    stem_min_length: int = 5
    """Longer words of the query are met by words that go up to `stem_max_extend` characters further too."""
    stem_max_extend: int = 3


DEFAULT_SETTINGS: Final = TeaserSettings()


class Teasers(Struct, frozen=True):
    """How the dynamic summaries of a document type are made."""

    settings: TeaserSettings = DEFAULT_SETTINGS
    by_name: Mapping[str, TeaserSettings] = field(default_factory=lambda: MappingProxyType({}))
    """Name of a summary field → its settings, instead."""

    def of(self, name: str) -> TeaserSettings:
        """The settings for a summary field."""
        return self.by_name.get(name, self.settings)


DEFAULT_TEASERS: Final = Teasers()


class Tags(Struct, frozen=True):
    """The marks around a word of the query, and where text is left out."""

    open: str = "<hi>"
    close: str = "</hi>"
    separator: str = "<sep />"


HI_TAGS: Final = Tags()
NO_TAGS: Final = Tags("", "", "...")
