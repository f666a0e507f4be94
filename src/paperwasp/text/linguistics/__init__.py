"""From text to the words it is indexed and searched by."""

from paperwasp.text.linguistics.detection import (
    CJK,
    ENGLISH,
    UNKNOWN,
    Language,
    detect,
    detect_all,
    detect_puts,
    language_of,
)
from paperwasp.text.linguistics.query import QueryToken, document_language, index_terms, query_language, query_terms
from paperwasp.text.linguistics.text import (
    NO_STEMMER,
    STEMMERS,
    TextProfile,
    normalized,
    profile_of,
    stem_words,
    stemmer_of,
)

__all__ = [
    "CJK",
    "ENGLISH",
    "NO_STEMMER",
    "STEMMERS",
    "UNKNOWN",
    "Language",
    "QueryToken",
    "TextProfile",
    "detect",
    "detect_all",
    "detect_puts",
    "document_language",
    "index_terms",
    "language_of",
    "normalized",
    "profile_of",
    "query_language",
    "query_terms",
    "stem_words",
    "stemmer_of",
]
