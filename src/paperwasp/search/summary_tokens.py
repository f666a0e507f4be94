"""`tokens` of a summary: what a value is searched by.

Of an indexed text each token, or where several stand in one place a list of them; of an attribute the value as it is
compared. Of an array or a weighted set that is one list for each text; weights are not shown.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#tokens
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paperwasp.schema.model import Field
from paperwasp.schema.text_profiles import text_profile
from paperwasp.text.linguistics import index_terms

TextTokens = Callable[[str, str], list[Any]]
"""A text and the language that its document says (empty: none) → its tokens."""


def tokens_of(source: Field) -> TextTokens:
    """What makes a text of the field its tokens."""
    if source.index is not None:
        profile = text_profile(source)
        return lambda text, language: [
            forms[0] if len(forms) == 1 else list(forms) for forms in index_terms(profile, text, language)
        ]
    if source.attribute is not None and (source.attribute.cased or source.cased):
        return lambda text, _: [text]
    return lambda text, _: [text.lower()]


def shown_tokens(value: Any, language: str, tokens: TextTokens) -> Any:
    """The tokens of a text, or of each in an array or of the keys of a weighted set."""
    if isinstance(value, str):
        return tokens(value, language)
    return [tokens(text, language) for text in value]
