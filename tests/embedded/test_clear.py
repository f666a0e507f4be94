"""Forgetting all documents: as if none had ever been fed, for whoever asks meanwhile, and after a restart."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import paperwasp
from paperwasp.embedded.lent_loop import Closed
from paperwasp.errors import NotFound
from tests.embedded.music import ROWS, SCHEMA


def _scores(service: paperwasp.Service) -> dict[str, float]:
    return {hit.id: hit.relevance for hit in service.query("blue", ranking="by_year")}


def test_scores_are_those_of_a_new_service() -> None:
    with paperwasp.Service(SCHEMA) as service:
        service.feed(ROWS)
        first = _scores(service)
        for _ in range(3):
            service.feed([{"id": f"other-{number}", "title": f"blue words {number}"} for number in range(200)])
            assert _scores(service) != first
            service.clear()
            assert (service.query("blue").total, list(service.visit()), service.get("1")) == (0, [], None)
            service.feed(ROWS)
            assert _scores(service) == first


def test_a_kept_answer_is_not_given_again() -> None:
    with paperwasp.Service(SCHEMA) as service:
        service.feed(ROWS)
        assert service.query("blue").total == service.query("blue").total == 2
        service.clear()
        assert service.query("blue").total == 0


def test_what_is_cleared_stays_cleared_and_leaves_no_files(tmp_path: Path) -> None:
    with paperwasp.Service(SCHEMA, tmp_path / "data") as service:
        service.feed(ROWS)
        service.clear()
        service.put("9", {"title": "Blue"})
    with paperwasp.Service(data_dir=tmp_path / "data") as service:
        assert [document.id for document in service.visit()] == ["id:music:music::9"]
        service.deploy(SCHEMA)
    assert [path.name for path in (tmp_path / "data" / "content").glob("*/*")] == ["content"]


def test_who_asks_meanwhile_is_answered() -> None:
    with paperwasp.Service(SCHEMA) as service:
        ended = threading.Event()
        totals: set[int] = set()

        def ask() -> None:
            while not ended.is_set():
                totals.add(service.query("select * from music where true", hits=0, timeout="20s").total)
                service.put("1", {"title": "Blue"})

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            service.clear()
        ended.set()
        for thread in threads:
            thread.join(60)
        assert totals <= {0, 1}
        service.clear()
        assert service.query("select * from music where true", hits=0).total == 0


def test_all_clusters_are_cleared() -> None:
    services = """<services version="1.0"><container id="c" version="1.0"><search/><document-api/></container>
        <content id="a" version="1.0"><redundancy>1</redundancy>
        <documents><document type="music" mode="index"/></documents>
        <nodes><node distribution-key="0" hostalias="h"/></nodes></content>
        <content id="b" version="1.0"><redundancy>1</redundancy>
        <documents><document type="film" mode="streaming"/></documents>
        <nodes><node distribution-key="0" hostalias="h"/></nodes></content></services>"""
    film = "schema film { document film { field title type string { indexing: summary | index } } }"
    files = {"services.xml": services, "schemas/music.sd": SCHEMA, "schemas/film.sd": film}
    with paperwasp.Service(files) as service:
        service.put("1", {"title": "x"}, schema="music")
        service.put("id:n:film:g=u:1", {"title": "x"})
        assert len(list(service.visit())) == 2
        service.clear()
        assert list(service.visit()) == []


def test_there_must_be_an_application() -> None:
    with paperwasp.Service() as service, pytest.raises(NotFound, match="default"):
        service.clear()
    with pytest.raises(Closed):
        service.clear()
