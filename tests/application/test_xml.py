"""XML from strangers: what is read, with its places, and what is refused."""

from __future__ import annotations

import pytest

from paperwasp import limits
from paperwasp.application.xml import parse_fragment, parse_xml
from paperwasp.errors import LanguageError

ENTITIES = b"""<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<a>&b;</a>"""


def test_elements_have_places_attributes_and_texts() -> None:
    root = parse_xml(b"<a x='1'>\n  <b>t<!-- c --><![CDATA[<&]]></b><c/>\n</a>", "f.xml")
    assert (root.tag, root.attributes, root.text) == ("a", {"x": "1"}, "")
    b, c = root.children
    assert (b.text, str(b.position), str(c.position)) == (
        "t<&",
        "f.xml, line 2, column 3",
        "f.xml, line 2, column 35",
    )
    assert root.first("c") is c and list(root.all("b")) == [b] and root.first("d") is None


def test_a_fragment_has_the_places_of_its_file() -> None:
    root = parse_fragment(b"<a/>\n<b/>", "f.xml", "around")
    assert [(child.tag, str(child.position)) for child in root.children] == [
        ("a", "f.xml, line 1, column 1"),
        ("b", "f.xml, line 2, column 1"),
    ]
    with pytest.raises(LanguageError, match=r"f\.xml, line 1, column 3: mismatched tag"):
        parse_fragment(b"</around><around>"[:9] + b"x</b>", "f.xml", "b")
    with pytest.raises(LanguageError):
        parse_fragment(b"</around><around>", "f.xml", "around")
    with pytest.raises(LanguageError, match=r"mismatched tag: 'a' of line 2, column 1 is not closed"):
        parse_fragment(b"<b/>\n<a>", "f.xml", "around")


@pytest.mark.parametrize(
    "content",
    [
        ENTITIES,
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "http://127.0.0.1/">]><a>&x;</a>',
        b'<!DOCTYPE a [<!ENTITY % p SYSTEM "http://127.0.0.1/"> %p;]><a/>',
        b"<!DOCTYPE a><a/>",
    ],
)
def test_document_types_and_entities_are_refused(content: bytes) -> None:
    with pytest.raises(LanguageError, match="Document type declarations and entities are not allowed"):
        parse_xml(content, "f.xml")


@pytest.mark.parametrize(
    "content",
    [b"", b"   ", b"<a>", b"<a></b>", b"<a/><b/>", b"a", b"\xff\xfe", b"<a>\x00</a>", b"<a>&b;</a>", b"<a x=1/>"],
)
def test_what_is_not_well_formed_is_refused(content: bytes) -> None:
    with pytest.raises(LanguageError, match=r"f\.xml, line 1"):
        parse_xml(content, "f.xml")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_other_encodings_are_read(encoding: str) -> None:
    text = f"<?xml version='1.0' encoding='{encoding}'?><a>blå</a>"
    assert parse_xml(text.encode(encoding), "f.xml").text == "blå"


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(LanguageError):
        parse_xml(b"<?xml version='1.0' encoding='klingon'?><a/>", "f.xml")


def test_size_depth_elements_and_attributes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "XML_DEPTH", 3)
    monkeypatch.setattr(limits, "XML_ELEMENTS", 5)
    monkeypatch.setattr(limits, "XML_ATTRIBUTES", 2)
    monkeypatch.setattr(limits, "XML_BYTES", 60)
    assert parse_xml(b"<a><b><c/></b><d x='' y=''/><e/></a>", "f.xml")
    for content, told in (
        (b"<a><b><c><d/></c></b></a>", "line 1, column 10: Elements are nested deeper than 3"),
        (b"<a><b/><b/><b/><b/><b/></a>", "line 1, column 20: There are more than 5 elements"),
        (b"<a x='' y='' z=''/>", "line 1, column 1: 'a' has more than 2 attributes"),
        (b"<a>" + b" " * 60 + b"</a>", "line 1, column 1: More than 60 bytes of XML"),
    ):
        with pytest.raises(LanguageError, match=told):
            parse_xml(content, "f.xml")
