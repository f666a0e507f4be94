"""Which language a text is in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.text.linguistics import UNKNOWN, detect, detect_all, document_language, language_of, query_language
from paperwasp.text.linguistics.detection import _COMMON_WORDS, LOOKED_AT_CHARACTERS

# The texts and languages of Vespa's own test of its detector, shortened.
PUBLISHED = [
    ("", ""),
    ("Hello!", ""),
    ("Yahoo became a public company via an initial public offering in April 1996", "en"),
    ("1996 ging Yahoo mit 46 Angestellten an die Börse. 2009 arbeiteten insgesamt rund 13.500 Mitarbeiter", "de"),
    ("À l'origine, Yahoo! était uniquement un annuaire Web.", "fr"),
    ("我能吞下玻璃而不伤身体。", "zh-hant"),
    ("Yahoo! Next是一个展示雅虎新技术、新产品的场所，目前在测试阶段。", "zh-hant"),
    ("เดือนกรกฎาคม 2012 Yahoo! ก็ได้ประธานเจ้าหน้าที่บริหารคนใหม่", "th"),
    ("وفقًا لمزودي تحليلات الويب دائما كأليكسا وسميلارويب،وصل موقع ياهولأكثر من 7 مليارات مشاهدة شهريًا", "ar"),
    ("야후!의 전신인 디렉터리 사이트는 1994년 1월에 스탠퍼드 대학교 출신의 제리 양과", "ko"),
    ("日本では、ヤフー株式会社がYahoo!（後にベライゾンがアルタバに売却）と", "ja"),
    ("7 февраля 2000 года Yahoo.com подвергся DDoS атаке и на несколько часов приостановил работу.", "ru"),
    ("אתר יאהו! הוא אחד מאתרי האינטרנט הפופולריים ביותר בעולם", "he"),
]  # fmt: skip

OTHERS = [
    ("Liebe ist für alle da", "de"),
    ("Bob Dylan ble født i Duluth og vokste opp i Hibbing. Han er en av de mest kjente artistene.", "nb"),
    ("Den lille havfrue er et eventyr af H.C. Andersen, som blev skrevet og udgivet i 1837.", "da"),
    ("Sverige är ett land i Norden och ett av de största länderna i Europa", "sv"),
    ("Helsinki on Suomen pääkaupunki ja se on myös maan suurin kaupunki", "fi"),
    ("La ciudad de México es la capital de los Estados Unidos Mexicanos y la más poblada", "es"),
    ("Lisboa é a capital de Portugal e a cidade mais populosa do país", "pt"),
    ("Roma è la capitale d'Italia. È il comune più popoloso e più esteso della nazione", "it"),
    ("Amsterdam is de hoofdstad van Nederland en een van de grootste steden", "nl"),
    ("București este capitala României și cel mai populat oraș din țară", "ro"),
    ("Budapest Magyarország fővárosa, és egyben az ország legnagyobb városa", "hu"),
    ("Ankara Türkiye'nin başkenti ve en kalabalık ikinci şehri olarak bilinir", "tr"),
    ("Jakarta adalah ibu kota negara dan kota terbesar di Indonesia yang terletak", "id"),
    ("Barcelona és una ciutat i la capital de Catalunya, amb una població de", "ca"),
    ("Is é Baile Átha Cliath príomhchathair na hÉireann agus an chathair is mó sa tír", "ga"),
    ("Η Αθήνα είναι η πρωτεύουσα της Ελλάδας", "el"),
    ("Київ є столицею України", "uk"),
    # Titles in English with words of other languages; formulas.
    ("El Niño and the Southern Oscillation", "en"),
    ("La La Land", ""),
    ("de la soul", ""),
    ("Die Hard with a Vengeance", "en"),
    ("The α-particle and the β-decay of Σ", "en"),
    ("Eine kleine Nachtmusik", ""),
]


@pytest.mark.parametrize(("text", "language"), PUBLISHED + OTHERS)
@pytest.mark.parametrize("before", [" ", "\n\t " * LOOKED_AT_CHARACTERS])
def test_white_space_before_a_text_says_nothing(text: str, language: str, before: str) -> None:
    assert detect(before + text) == language
    assert detect_all([before + text]) == detect_all([text])


@pytest.mark.parametrize(("text", "language"), PUBLISHED + OTHERS)
def test_detection(text: str, language: str) -> None:
    assert detect(text) == language


@given(st.text())
def test_any_text_has_a_language_or_none(text: str) -> None:
    found = detect(text)
    assert found == UNKNOWN or language_of(found) == found


WORDS = st.sampled_from(
    ["die", "Hund", "und", "und,", "the", "l'origine", "le", "les", "é", "x" * 13, "y" * 12, "\x1d", "2"]
)
SENTENCES = st.lists(st.one_of(WORDS, st.text(alphabet="adenu DE'_\n\t-é", max_size=6)), max_size=80).map(" ".join)


@given(st.lists(SENTENCES, max_size=5))
def test_many_texts_at_once_are_told_apart_as_one_by_one(texts: list[str]) -> None:
    one_by_one = {number: detect(text) for number, text in enumerate(texts)}
    assert detect_all(texts) == {number: found for number, found in one_by_one.items() if found not in ("", "en")}


@given(st.lists(SENTENCES, max_size=5), st.integers(1, 3))
def test_the_word_set_counts_the_words_of_ascii_texts(texts: list[str], least: int) -> None:
    words = ["und", "die", "d", "y" * 12, "x" * 13]
    found = _core.WordSet(words).texts_with(texts, least, LOOKED_AT_CHARACTERS)
    heads = [text[:LOOKED_AT_CHARACTERS].lower().replace("'", " ").split() for text in texts]
    counts = [sum(word in words and len(word) <= 12 for word in head) for head in heads]
    assert found == [i for i, text in enumerate(texts) if not text.isascii() or counts[i] >= least]


def test_every_common_word_is_one_word() -> None:
    for language, words in _COMMON_WORDS.items():
        assert language_of(language) == language
        assert all(word == word.lower() and len(word) <= 12 for word in words.split())


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ("en-US", "en"), ("EN_us", "en"), (" nb-NO ", "nb"), ("no", "nb"), ("in", "id"), ("iw", "he"), ("ji", "yi"),
        ("zh", "zh-hant"), ("zh-CN", "zh-hans"), ("zh_Hans", "zh-hans"), ("zh-Hans-SG", "zh-hans"),
        ("zh-TW", "zh-hant"), ("zh-hans", "zh-hans"), ("tlh", ""), ("", ""), ("x", ""), ("english", ""), ("-", ""),
    ],
)  # fmt: skip
def test_tags(tag: str, language: str) -> None:
    assert language_of(tag) == language


def test_what_is_said_comes_before_what_is_detected() -> None:
    assert document_language("Liebe ist für alle da", "sv") == "sv"
    assert document_language("Liebe ist für alle da", "tlh") == "de"
    assert document_language("blue") == query_language("", "blue") == "en"
    assert query_language("fr-CA", "Liebe ist für alle da") == "fr"
