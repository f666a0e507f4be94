"""The marks that an application says for words of queries, in answers of a whole service.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#bolding
"""

from __future__ import annotations

import paperwasp
from paperwasp.embedded.requests import query_request

SCHEMA = """
schema note {
    document note {
        field title type string { indexing: index | summary
            bolding: on }
        field text type string { indexing: index | summary
            summary: dynamic }
    }
}
"""
SERVICES = """<services version="1.0">
    <container id="default" version="1.0"><search/><document-api/>{config}</container>
    <content id="notes" version="1.0"><redundancy>1</redundancy>
        <documents><document type="note" mode="index"/></documents>
    </content>
</services>"""
CONFIG = """<config name="container.qr-searchers"><tag>
    <bold><open>&lt;b&gt;</open><close>&lt;/b&gt;</close></bold><separator>[…]</separator>
</tag></config>"""
TEXT = "one fox here. " + "lorem ipsum " * 60 + "another fox there. " + "lorem ipsum " * 60
YQL = "select title, text from note where title contains 'fox' and text contains 'fox'"


def package(config: str) -> dict[str, str]:
    return {"schemas/note.sd": SCHEMA, "services.xml": SERVICES.format(config=config)}


def test_words_are_marked_as_the_application_says() -> None:
    with paperwasp.Service(package(CONFIG)) as service:
        service.put("1", {"title": "A fox & a <hen>", "text": TEXT})
        shown = service.query(YQL)[0].fields
        assert shown["title"] == "A <b>fox</b> & a <hen>"
        assert shown["text"].count("<b>fox</b>") == 2
        assert shown["text"].count("[…]") == 2
        assert "<hi>" not in shown["text"] and "<sep />" not in shown["text"]
        plain = service.query(YQL, bolding=False)[0].fields
        assert plain["title"] == "A fox & a <hen>"
        assert "<b>" not in plain["text"] and "..." in plain["text"] and "[…]" not in plain["text"]

        service.deploy(package(""))
        assert service.query(YQL)[0]["title"] == "A <hi>fox</hi> & a <hen>"
        assert "<sep />" in service.query(YQL)[0]["text"]


def test_marks_are_markup_in_xml() -> None:
    with paperwasp.Service(package(CONFIG)) as service:
        service.put("1", {"title": "A fox & a <hen>", "text": "the fox"})
        answer = service.request(query_request({"yql": YQL, "format": "xml"}))
        assert "A <b>fox</b> &amp; a &lt;hen&gt;</field>" in answer.body.decode()
