"""The hybrid benchmark asks for what its peers do: candidates of both kinds, fused by their places."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import paperwasp
from bench import hybrid
from bench.hybrid import APPLICATION, Asked, Options, Ranked, agreement, fused
from bench.layers import NothingMeasured
from bench.report import Report

SEED = 13
DOCUMENTS = 400
WORDS = ("red", "green", "blue", "white", "black", "grey", "brown", "pink", "teal", "gold")


def test_hits_are_those_that_the_lists_of_both_kinds_give(tmp_path: Path) -> None:
    """Few words match more than 100 documents, and no vector lies near a text: most are in one list alone."""
    choice, vectors = random.Random(SEED), hybrid._vectors(DOCUMENTS)
    rows = [
        {
            "id": number,
            "number": number,
            "body": " ".join(choice.choices(WORDS, k=choice.randrange(5, 60))),
            "vector": vector,
        }
        for number, vector in enumerate(vectors.tolist())
    ]
    with paperwasp.Service(APPLICATION, tmp_path, port=0) as service:
        assert not service.feed(rows, schema="article").failed
        for vector in hybrid._vectors(5, SEED):
            asked = Asked(" ".join(choice.sample(WORDS, 2)), vector)
            words, near = (_found(service, asked, kind, hybrid.WANTED) for kind in ("words", "vectors"))
            exact = np.argsort(-(vectors @ vector), kind="stable")[: hybrid.WANTED].tolist()
            assert len(set(near) & set(exact)) >= 95
            assert len(words) == hybrid.WANTED
            assert set(_found(service, asked, "fused", hybrid.HITS)) == set(fused(words, near)), f"seed {SEED}"


def _found(service: paperwasp.Service, asked: Asked, kind: str, hits: int) -> Ranked:
    body = json.loads(hybrid._request(asked, kind).partition(b"\r\n\r\n")[2])
    return [hit.fields["number"] for hit in service.query({**body, "hits": hits}).hits]


def test_what_is_in_both_lists_comes_first() -> None:
    assert fused([1, 2, 3], [4, 3, 5])[0] == 3
    assert fused([1, 2], [])[:2] == [1, 2]
    assert len(fused(list(range(30)), list(range(30, 60)))) == hybrid.HITS


def test_the_share_of_the_peers_hits_that_are_ours() -> None:
    assert agreement([[1, 2, 9], [4]], [[2, 1, 3], [4]]) == 0.75
    assert agreement([list(range(1, 12))], [list(range(11))]) == 0.9
    with pytest.raises(NothingMeasured):
        agreement([[1]], [[]])


def test_no_two_documents_have_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hybrid, "records", lambda: iter([("", f"text {number}") for number in range(7)]))
    texts = hybrid._texts(60)
    assert len(set(texts)) == len(texts) == 60
    assert texts[:7] == [f"text {number}" for number in range(7)]


def test_words_are_none_that_an_engine_takes_for_operators(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "queries"
    file.write_text("cats AND -dogs\nnear-infrared light*\n")
    monkeypatch.setenv("BENCH_QUERIES", str(file))
    assert hybrid._lines() == ["cats and dogs", "near infrared light"]


def test_each_kind_has_its_row() -> None:
    report = Report()
    least = {"words": 70.0, "tantivy": 70.0, "vectors": 130.0, "hnswlib": 100.0, "fused": 205.0, "glued": 170.0}
    hybrid._report(report, least, {"words": 1.0, "vectors": 1.0, "fused": 0.89}, Options())
    assert [(row.ratio, row.met) for row in report.rows] == [
        ("1.00", None),
        ("1.30", True),
        ("1.21", False),
        ("", False),
    ]
