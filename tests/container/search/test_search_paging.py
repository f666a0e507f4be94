"""Pages that follow each other over real nodes: together they are all hits, once each, in the order of one page."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.container.search.search_nodes import Running, put, remove, running, update

KINDS = ("music", "book", "thing")
DOCUMENTS = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.fixed_dictionaries(
            {"title": st.sampled_from(["a", "a b", "a a b", "b"])},
            optional={
                "year": st.integers(-3, 3),
                "name": st.sampled_from(["x", "X", "y", "é", ""]),
                "price": st.sampled_from([0.5, -0.5, 1e300]),
            },
        ),
    ),
    max_size=25,
)
SORTINGS = st.lists(
    st.sampled_from(
        [
            "year",
            "-year",
            "name",
            "-name",
            "-price",
            "[relevance]",
            "raw(name)",
            "missing(year,last)",
            "[docid]",
            "uca(name,en)",
        ]
    ),
    max_size=3,
    unique=True,
).map(" ".join)


def pages(service: Running, size: int, **parameters: object) -> list[str]:
    """The ids of all hits, page by page."""
    found: list[str] = []
    token = ""
    while True:
        root = service.ask(hits=size, searchAfter=token, **parameters)
        assert "errors" not in root, root
        children = root.get("children", [])
        found += [hit["id"] for hit in children]
        if "continuation" not in root:
            assert len(children) < size
            return found
        token = root["continuation"]["next"]
        assert len(found) < 1000


@settings(deadline=None, max_examples=15)
@given(
    documents=DOCUMENTS,
    gone=st.sets(st.integers(0, 24), max_size=4),
    changed=st.sets(st.integers(0, 24), max_size=4),
    sorting=SORTINGS,
    profile=st.sampled_from(["year", "bm25", "again", "level", "words", "spread", "unranked"]),
    size=st.integers(1, 7),
    sources=st.sampled_from(["", "media", "other", "media,other"]),
)
def test_pages_are_the_whole(
    documents: list[tuple[str, dict[str, object]]],
    gone: set[int],
    changed: set[int],
    sorting: str,
    profile: str,
    size: int,
    sources: str,
) -> None:
    with running() as service:
        service.apply(*(put(number, kind, **fields) for number, (kind, fields) in enumerate(documents)))
        service.apply(*(remove(number, documents[number][0]) for number in gone if number < len(documents)))
        service.apply(*(update(number, documents[number][0], year=1) for number in changed if number < len(documents)))
        said = {"query": "a", "type": "any", "default-index": "title", "ranking": profile, "sources": sources}
        if sorting:
            said["sorting"] = sorting
        whole = [hit["id"] for hit in service.ask(hits=400, **said).get("children", [])]
        assert pages(service, size, **said) == whole


def test_a_page_begins_behind_a_hit_that_is_gone_or_changed() -> None:
    """Hit 3 ends the first page; whatever becomes of it, the second one begins with hit 4."""
    for change in (remove(3), update(3, year=100), put(3, title="a", year=-5)):
        with running() as service:
            service.apply(*(put(number, title="a", year=number) for number in range(8)))
            said = {"query": "a", "default-index": "title", "sources": "media", "hits": 4}
            for sorting in ({"sorting": "year"}, {"sorting": "-[relevance] year"}):
                first = service.ask(searchAfter="", **said, **sorting)
                assert [hit["fields"]["year"] for hit in first["children"]] == [0, 1, 2, 3]
                service.apply(change)
                second = service.ask(searchAfter=first["continuation"]["next"], **said, **sorting)
                shown = [hit["fields"]["year"] for hit in second["children"]]
                assert shown[:4] == [4, 5, 6, 7]
                service.apply(put(3, title="a", year=3))


def test_totals_are_of_all_hits_and_the_last_page_says_nothing_of_a_next_one() -> None:
    with running() as service:
        service.apply(*(put(number, title="a") for number in range(3)))
        said = {"query": "a", "default-index": "title", "sources": "media"}
        first = service.ask(searchAfter="", hits=2, **said)
        last = service.ask(searchAfter=first["continuation"]["next"], hits=2, **said)
        assert first["fields"]["totalCount"] == last["fields"]["totalCount"] == 3
        assert len(last["children"]) == 1
        assert "continuation" not in last
        assert "continuation" not in service.ask(hits=2, **said)
