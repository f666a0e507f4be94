"""Tests of the application as pyvespa's documentation has them: deploy to a container, feed, ask, remove it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from music_package import MUSIC
from vespa.application import Vespa
from vespa.deployment import VespaDocker
from vespa.io import VespaQueryResponse

SONGS = [
    {"id": "1", "fields": {"title": "Blue Train", "artist": "John Coltrane", "year": 1957}},
    {"id": "2", "fields": {"title": "Kind of Blue", "artist": "Miles Davis", "year": 1959}},
    {"id": "3", "fields": {"title": "Giant Steps", "artist": "John Coltrane", "year": 1960}},
]
PORT = int(os.environ.get("MUSIC_PORT", "8080"))
CONFIG_PORT = int(os.environ.get("MUSIC_CONFIG_PORT", "19071"))


@pytest.fixture(scope="module")
def app() -> Iterator[Vespa]:
    vespa_docker = VespaDocker(port=PORT, cfgsrv_port=CONFIG_PORT)
    app = vespa_docker.deploy(application_package=MUSIC)
    app.feed_iterable(SONGS, schema="music")
    yield app
    assert vespa_docker.container is not None
    vespa_docker.container.stop(timeout=10)
    vespa_docker.container.remove()


def _titles(app: Vespa, **parameters: object) -> list[str]:
    answer = app.query(body={"yql": "select * from music where userQuery()", "timeout": "10s", **parameters})
    assert isinstance(answer, VespaQueryResponse)
    return [hit["fields"]["title"] for hit in answer.hits]


def test_words_of_the_title(app: Vespa) -> None:
    assert sorted(_titles(app, query="blue")) == ["Blue Train", "Kind of Blue"]


def test_the_newest_first(app: Vespa) -> None:
    assert _titles(app, query="coltrane", ranking="newest") == ["Giant Steps", "Blue Train"]


def test_a_song_that_changes(app: Vespa) -> None:
    assert app.update_data(schema="music", data_id="1", fields={"year": 1961}).is_successful()
    assert app.get_data(schema="music", data_id="1").json["fields"]["year"] == 1961
    assert _titles(app, query="coltrane", ranking="newest") == ["Blue Train", "Giant Steps"]


def test_services_that_restart_keep_what_was_fed(app: Vespa) -> None:
    VespaDocker.from_container_name_or_id("music").restart_services()
    assert sorted(_titles(app, query="blue")) == ["Blue Train", "Kind of Blue"]
