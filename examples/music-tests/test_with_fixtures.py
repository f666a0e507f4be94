"""Tests with fixtures of paperwasp: no port to choose, and an empty application for each test."""

from __future__ import annotations

import pytest

from paperwasp import Service

SONGS = [
    {"id": "1", "title": "Blue Train", "artist": "John Coltrane", "year": 1957},
    {"id": "2", "title": "Kind of Blue", "artist": "Miles Davis", "year": 1959},
    {"id": "3", "title": "Giant Steps", "artist": "John Coltrane", "year": 1960},
]


@pytest.fixture
def songs(paperwasp_service: Service) -> Service:
    assert paperwasp_service.feed(SONGS).failed == 0
    return paperwasp_service


def test_words_of_the_title(songs: Service) -> None:
    assert sorted(hit["title"] for hit in songs.query("blue", timeout="10s")) == ["Blue Train", "Kind of Blue"]


def test_the_newest_first(songs: Service) -> None:
    assert [hit["title"] for hit in songs.query("coltrane", ranking="newest", timeout="10s")] == [
        "Giant Steps",
        "Blue Train",
    ]


def test_each_test_has_an_application_of_its_own(paperwasp_service: Service) -> None:
    assert paperwasp_service.query("blue", timeout="10s").total == 0
