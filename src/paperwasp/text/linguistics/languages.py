"""Languages, named by the codes that Vespa knows them by.

Vespa: https://docs.vespa.ai/en/linguistics/linguistics.html#language-handling, and the tags that its `Language` lists.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

Language = str
"""A code of `LANGUAGES`, or `UNKNOWN`."""

UNKNOWN: Final = ""
ENGLISH: Final = "en"
CHINESE_SIMPLIFIED: Final = "zh-hans"
CHINESE_TRADITIONAL: Final = "zh-hant"

_CODES: Final = (
    "ab aa af sq am ar hy as ay az ba eu bn dz bh bi br bug bg my be km ca chr cop co hr cs da div nl en eo et fo "
    "fj fi fr fy gl ka de got el kl gn gu ha he hi hu is id ia ie iu ik ga it ja jw kn ks kk rw ky rn ko ku lo la "
    "lv ln lt mk mg ms ml mt mni mi mr mo mn mun na ne nb nn oc or om ps fa pl pt pa qu rm ro ru sm sg sa gd sr sh "
    "st tn sn ii sd si ss sk sl so es su sw sv syr fil tg ta tt te th bo ti to ts tr tk tw uga ug uk ur uz vi vo cy "
    "wo xh yi yo za zu"
)
LANGUAGES: Final = frozenset(_CODES.split()) | {CHINESE_SIMPLIFIED, CHINESE_TRADITIONAL}

CJK: Final = frozenset({CHINESE_SIMPLIFIED, CHINESE_TRADITIONAL, "ja", "ko", "th"})
"""Languages that do not put spaces between words, or not always."""

_OTHER_NAMES: Final = {"in": "id", "iw": "he", "ji": "yi", "no": "nb"}

_LONGEST_KEPT: Final = 35
"""Characters of a tag that is remembered: what RFC 5646 wants all to have room for."""


def language_of(tag: str) -> Language:
    """The language of an RFC 5646 tag such as `en-US` or `zh_Hans`; UNKNOWN for any other text.

    Chinese is traditional, unless the tag says `CN` or `Hans`.
    """
    return (_kept if len(tag) <= _LONGEST_KEPT else _language_of)(tag)


def _language_of(tag: str) -> Language:
    parts = tag.strip().replace("_", "-").lower().split("-")
    code = _OTHER_NAMES.get(parts[0], parts[0])
    if code == "zh":
        return CHINESE_SIMPLIFIED if {"cn", "hans"} & set(parts[1:3]) else CHINESE_TRADITIONAL
    return code if code in LANGUAGES else UNKNOWN


_kept: Final = lru_cache(maxsize=1024)(_language_of)
