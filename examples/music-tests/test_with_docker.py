"""Tests of an application as people write them with pyvespa. With Docker, the first line would be the second one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from vespa.application import Vespa
from vespa.io import VespaQueryResponse

from paperwasp.testing import VespaLocal as VespaDocker

# from vespa.deployment import VespaDocker

SONGS = [
    {"id": "1", "fields": {"title": "Blue Train", "artist": "John Coltrane", "year": 1957}},
    {"id": "2", "fields": {"title": "Kind of Blue", "artist": "Miles Davis", "year": 1959}},
    {"id": "3", "fields": {"title": "Giant Steps", "artist": "John Coltrane", "year": 1960}},
]


@pytest.fixture(scope="module")
def app() -> Iterator[Vespa]:
    docker = VespaDocker(port=8089, cfgsrv_port=19089)
    app = docker.deploy_from_disk("music", Path(__file__).parent / "app")
    app.feed_iterable(SONGS, schema="music")
    yield app
    if docker.container is not None:
        docker.container.stop()
        docker.container.remove()


def _titles(app: Vespa, **parameters: object) -> list[str]:
    answer = app.query(body={"yql": "select * from music where userQuery()", **parameters})
    assert isinstance(answer, VespaQueryResponse)
    return [hit["fields"]["title"] for hit in answer.hits]


def test_words_of_the_title(app: Vespa) -> None:
    assert sorted(_titles(app, query="blue")) == ["Blue Train", "Kind of Blue"]


def test_the_newest_first(app: Vespa) -> None:
    assert _titles(app, query="coltrane", ranking="newest") == ["Giant Steps", "Blue Train"]
