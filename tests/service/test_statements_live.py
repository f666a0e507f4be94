"""Which statement counts where there are several: that of the request, or that of a query profile."""

from __future__ import annotations

import paperwasp
from paperwasp.embedded.requests import query_request

SCHEMA = """
schema note {
    document note {
        field title type string { indexing: index | summary }
    }
}
"""
PROFILE = (
    """<query-profile id="{}"><field name="yql">select * from note where title contains 'fox'</field></query-profile>"""
)
WHERE = {"contains": ["title", "hen"]}


def test_yql_counts_more_than_conditions_as_json() -> None:
    """As in Vespa: MinimalQueryInserter.java sets the tree of `yql` in place of any other."""
    package = {"schemas/note.sd": SCHEMA, "search/query-profiles/foxes.xml": PROFILE.format("foxes")}
    with paperwasp.Service(package) as service:
        service.put("1", {"title": "a fox"})
        service.put("2", {"title": "a hen"})
        assert [hit["title"] for hit in service.query({"select": {"where": WHERE}})] == ["a hen"]
        assert [hit["title"] for hit in service.query({"select": {"where": WHERE}, "queryProfile": "foxes"})] == [
            "a fox"
        ]
        both = query_request({"select": {"where": WHERE}, "yql": "select * from note where true"})
        answer = service.request(both)
        assert answer.status == 400
        assert b"Query contains both yql and select parameter" in answer.body


SERVICES = """<services version="1.0">
    <container id="default" version="1.0">
        <search><chain id="mine" inherits="vespa"/><chain id="empty"/></search><document-api/>
    </container>
    <content id="notes" version="1.0"><redundancy>1</redundancy>
        <documents><document type="note" mode="index"/></documents>
    </content>
</services>"""


def test_search_chains_of_the_application() -> None:
    with paperwasp.Service({"schemas/note.sd": SCHEMA, "services.xml": SERVICES}) as service:
        service.put("1", {"title": "a fox"})
        yql = "select * from note where true"
        for chain in ("mine", "mine:1", "vespa"):
            assert service.query(yql, searchChain=chain).total == 1
        for chain in ("yours", "empty"):
            answer = service.request(query_request({"yql": yql, "searchChain": chain}))
            assert answer.status == 400
            assert f"No search chain named '{chain}' was found".encode() in answer.body


def test_a_filter_may_be_all_there_is() -> None:
    """As in Vespa: AbstractParser.java reads the filter where the text has nothing."""
    with paperwasp.Service(
        SCHEMA.replace("schema note {", "schema note { fieldset default { fields: title }")
    ) as service:
        service.put("1", {"title": "a fox"})
        service.put("2", {"title": "a hen"})
        for text in ({}, {"query": ""}, {"query": "*"}):
            for filter_, titles in (("+fox", ["a fox"]), ("-fox", ["a hen"]), ("fox", ["a fox"])):
                assert [hit["title"] for hit in service.query({**text, "filter": filter_})] == titles
