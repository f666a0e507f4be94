"""Which language a text is written in: by its letters, and in Latin letters by its most common words.

Only the beginning of a text is looked at, and only what tells languages apart that are stemmed differently, or that
write without spaces. A text says a language when at least two different words of it are among the language's most
common, and not among those of English, and all of them outweigh those of every other; short texts mostly say none.

Vespa: https://docs.vespa.ai/en/linguistics/linguistics-opennlp.html#language-detection
Differs: Vespa has a statistical model of 103 languages for the same. This is a few hundred words, answers in
microseconds, and always the same: the terms of a document may depend on nothing else than the document.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.core import _core
from paperwasp.core._core import PlainChange

# Languages, named by the codes that Vespa knows them by.
#
# Vespa: https://docs.vespa.ai/en/linguistics/linguistics.html#language-handling, and the tags that its `Language`
# lists.


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


LOOKED_AT_CHARACTERS: Final = 256
"""At the beginning of a text, as in Vespa."""
_SHORTEST: Final = 16
"""Characters. Text in Latin letters that is shorter hardly says a language."""
_WEIGHT: Final = 60
"""The weight of a word that only one language has; one of several languages counts for each a part of that."""
_MARGIN: Final = 1.2
"""By how much the best language must outweigh the next."""

_COMMON_WORDS: Final[dict[Language, str]] = {
    "ca": "el la els les de del i en un una que és amb per no es al dels com més va han seva seu aquest aquesta també "
    "són però o entre fins sobre on molt quan hi ha l d s què",
    "cs": "a v na je se s z do že to i o jako ve za pro po od ale byl jsou které který která jeho podle také nebo "
    "jsem by ze při roku být",
    "da": "og i at er det en til på som af for den med de ikke der har et blev fra var men ved kan også efter eller "
    "om sig han hun jeg hvor hvad mere blive nogle meget vi",
    "de": "der die das und in zu den von ist mit sich des auf für dem nicht ein eine als auch es an werden aus er hat "
    "dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur "
    "bis mehr durch man sein wurde ich wir alle wenn im",
    "en": "the of and to in a is that for it as was with be by on not he this are at from or have an had they which "
    "one you were all her she there would their we him been has when who will no if out so what up its about "
    "into than them can only other new some could these two may then do first any my now such like our over me "
    "even most after also how using where why your",
    "es": "de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ya o fue este "
    "ha sí porque esta son entre está cuando muy sin sobre también me hasta hay donde quien desde todo nos "
    "durante uno ni",
    "fi": "ja on ei se että hän oli en mutta ovat kun myös tai joka niin ole kuin mukaan sen ollut vain nyt jo sekä "
    "jos hänen voi mitä tämä vielä siitä tässä olla minä sinä kuten jotka jonka jossa",
    "fr": "de la le et les des en un une du que qui est dans pour au il sur pas plus par ce avec ne se sont cette son "
    "mais ou à été aux comme nous sa on était ses être fait leur deux elle ont tout même après ces bien où "
    "entre lorsque très aussi je vous l d qu c n s",
    "ga": "an na agus ar i is le ag go a bhí sé sí tá ach ní nach faoi chun seo sin bhfuil mar nó do de ó gur raibh "
    "leis iad siad ann",
    "hu": "a az és hogy nem is egy ez volt meg csak de mint már még el ha ki vagy sem lesz kell azt aki ezt amely ami "
    "van után mert között szerint lehet minden majd több olyan pedig",
    "id": "yang dan di untuk dengan ini itu dari dalam pada tidak adalah akan ke sebagai juga oleh telah karena ada "
    "atau saya bisa lebih mereka kami kita tersebut sudah harus dapat menjadi seperti",
    "it": "di e il la che in un a per è una sono con non del della i le da si al dei come anche più nel alla ha lo ma "
    "dal delle gli suo sua questo questa o dalla era ed essere stato fra tra quando molto degli nella l",
    "nb": "og i at er det en til på som av for den med de ikke der har et ble fra var men ved kan også etter eller om "
    "seg han hun jeg hvor hva mer bli noen mye vi å være hadde skal ut opp sin",
    "nl": "de het een en van in is dat op te zijn met voor niet aan er om ook als maar dan die was bij nog uit naar "
    "heeft hij door worden wordt tot ze over werd deze kan geen hebben meer of ik je we zich haar onder tegen "
    "waar",
    "nn": "og i at er det ein eit til på som av for den med dei ikkje har frå var men ved kan også etter eller om seg "
    "han ho eg kor kva meir bli nokre mykje vi vart å vere hadde skal",
    "pl": "i w na z do się nie to że jest o jak po od za przez co dla ale są był jego oraz ich czy tak przy które "
    "który jako może tym roku być też ze tylko",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas foi ao ele das tem à seu "
    "sua ou ser quando muito há nos já está eu também só pelo pela até isso ela entre era depois sem mesmo aos "
    "são",
    "ro": "de și în a la cu pe că nu o din este un care mai se pentru să au fi ca sunt lui prin după dar ce sau fost "
    "era ale cel cea acest această ei am îi unei unui între şi iar dintre",
    "sv": "och i att det som en på är av för med till den har de inte om ett men var från så kan vi han eller också "
    "när efter vid ut nu sig då under hade över där ska blev mot jag sin sina detta mycket",
    "tr": "ve bir bu da de için ile çok daha olarak olan gibi en ne kadar o sonra ama var her ya ki değil mi ise şey "
    "olduğu tarafından ben sen biz onun göre ancak yok",
}


def _weights() -> dict[str, tuple[tuple[Language, int], ...]]:
    languages: dict[str, set[Language]] = defaultdict(set)
    for language, words in _COMMON_WORDS.items():
        for word in words.split():
            languages[word].add(language)
    return {
        word: tuple((language, _WEIGHT // len(known)) for language in sorted(known))
        for word, known in languages.items()
    }


_WORDS: Final = _weights()
_ENGLISH_WORDS: Final = frozenset(_COMMON_WORDS[ENGLISH].split())
_FOREIGN_WORDS: Final = frozenset(word for word in _WORDS if len(word) > 1) - _ENGLISH_WORDS
"""A text that has not two of them is English or says nothing: most texts need no closer look."""
FOREIGN: Final = _core.WordSet(sorted(_FOREIGN_WORDS))

_ALPHABETS: Final[tuple[tuple[str, str, Language, int], ...]] = (
    ("\u0370", "\u03ff", "el", 1),
    ("\u0400", "\u04ff", "ru", 1),
    ("\u0530", "\u058f", "hy", 1),
    ("\u0590", "\u05ff", "he", 1),
    ("\u0600", "\u06ff", "ar", 1),
    ("\u0750", "\u077f", "ar", 1),
    ("\u0900", "\u097f", "hi", 1),
    ("\u0980", "\u09ff", "bn", 1),
    ("\u0b80", "\u0bff", "ta", 1),
    ("\u0c00", "\u0c7f", "te", 1),
    ("\u0e00", "\u0e7f", "th", 1),
    ("\u10a0", "\u10ff", "ka", 1),
    ("\u1100", "\u11ff", "ko", 3),
    ("\u1f00", "\u1fff", "el", 1),
    ("\u2e80", "\u2eff", CHINESE_TRADITIONAL, 3),
    ("\u3040", "\u30ff", "ja", 3),
    ("\u3100", "\u312f", CHINESE_TRADITIONAL, 3),
    ("\u3130", "\u318f", "ko", 3),
    ("\u3190", "\u319f", "ja", 3),
    ("\u31f0", "\u31ff", "ja", 3),
    ("\u3200", "\u321f", "ko", 3),
    ("\u3260", "\u327f", "ko", 3),
    ("\u3400", "\u4dbf", CHINESE_TRADITIONAL, 3),
    ("\u4e00", "\u9fff", CHINESE_TRADITIONAL, 3),
    ("\uac00", "\ud7af", "ko", 3),
    ("\uf900", "\ufaff", CHINESE_TRADITIONAL, 3),
    ("\ufb50", "\ufdff", "ar", 1),
    ("\ufe70", "\ufeff", "ar", 1),
    ("\uffa0", "\uffdf", "ko", 3),
    ("\U00020000", "\U0003ffff", CHINESE_TRADITIONAL, 3),
)
"""First and last letter, the language they are taken for, and how many letters of Latin one of them counts for."""
_FIRST_LETTERS: Final = [first for first, *_ in _ALPHABETS]
_BEYOND_LATIN: Final = compile_later("[" + "".join(f"{first}-{last}" for first, last, *_ in _ALPHABETS) + "]")
_LATIN: Final = compile_later("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")

_CLOSER: Final[dict[Language, tuple[tuple[Language, str], ...]]] = {
    "ru": (("uk", "іїєґІЇЄҐ"), ("be", "ўЎ"), ("sr", "љњћђџјЉЊЋЂЏЈ"), ("kk", "әғқңөұүһӘҒҚҢӨҰҮҺ")),
    "ar": (("ur", "ٹڈڑںےہ"), ("fa", "پچژگکی")),
}
"""Languages with the same letters and some of their own: the first of which any is there."""


def detect(text: str) -> Language:
    """The language of a text, UNKNOWN if it does not say. Depends on the text alone."""
    head = text.lstrip() if text[:1].isspace() else text  # white space tells nothing
    head = head if len(head) <= LOOKED_AT_CHARACTERS else head[:LOOKED_AT_CHARACTERS]
    if not head.isascii() and _BEYOND_LATIN.search(head) and (language := _by_letters(head)):
        return language
    if len(head) < _SHORTEST:
        return UNKNOWN
    words = head.lower().replace("'", " ").split()
    if len(_FOREIGN_WORDS.intersection(words)) < 2:
        return UNKNOWN if _ENGLISH_WORDS.isdisjoint(words) else ENGLISH
    return _by_words(words)


def detect_all(texts: list[str]) -> dict[int, Language]:
    """The languages of texts, by number, of those that are neither English nor UNKNOWN."""
    texts = [text.lstrip() if text[:1].isspace() else text for text in texts]  # as `detect` does
    return _others((number, texts[number]) for number in FOREIGN.texts_with(texts, 2, LOOKED_AT_CHARACTERS))


def detect_puts(puts: list[PlainChange], name: str) -> dict[int, Language] | None:
    """The same of the texts that plain puts have in a field; None where one has something else than a text of ASCII."""
    found = FOREIGN.puts_with(puts, name, 2, LOOKED_AT_CHARACTERS)
    if not found:
        return None if found is None else {}
    return _others([(number, str(puts[number].get(name))) for number in found])


def _others(texts: Iterable[tuple[int, str]]) -> dict[int, Language]:
    found = {number: detect(text) for number, text in texts}
    return {number: language for number, language in found.items() if language not in (ENGLISH, UNKNOWN)}


def _by_letters(head: str) -> Language:
    """The language whose letters prevail; UNKNOWN where those of Latin do."""
    counts: dict[Language, int] = defaultdict(int)
    for letter, count in Counter(_BEYOND_LATIN.findall(head)).items():
        _, _, language, weight = _ALPHABETS[bisect_right(_FIRST_LETTERS, letter) - 1]
        counts[language] += count * weight
    language = max(sorted(counts), key=counts.__getitem__)
    if counts[language] < len(_LATIN.findall(head)):
        return UNKNOWN
    if language == CHINESE_TRADITIONAL:
        # Japanese and Korean write some words in Chinese characters.
        return next((other for other in ("ja", "ko") if other in counts), language)
    for closer, letters in _CLOSER.get(language, ()):
        if any(letter in head for letter in letters):
            return closer
    return language


def _by_words(words: list[str]) -> Language:
    """The language whose common words prevail, if two or more of them are not English."""
    weights: dict[Language, int] = defaultdict(int)
    foreign: dict[Language, int] = defaultdict(int)
    for word in _WORDS.keys() & words:
        for language, weight in _WORDS[word]:
            weights[language] += weight
            foreign[language] += word in _FOREIGN_WORDS
    best = max(sorted(weights), key=weights.__getitem__)
    others = max((weight for language, weight in weights.items() if language != best), default=0)
    if weights[best] < _MARGIN * others or (best != ENGLISH and foreign[best] < 2):
        return UNKNOWN
    return best
