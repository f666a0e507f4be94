"""Golden scripts of explanations: why hits rank where they do, in memory, after a start from the disk, and in streaming
search.

Cases are parted by blank lines; lines that begin with `#` before a case are remarks. A case is a YQL statement, or
`where …` for `select * from music where …`; lines `name=value` are further parameters; all ask with an explain
level. After a line `---` comes the answer: for each hit the last part of its id and its relevance; below it each phase
with its score, and its tree: `value expression [kind]`. In `explain_scripts/` are the scripts, the application and its
documents. PAPERWASP_REWRITE_SCRIPTS=1 writes what the service says into the script instead of comparing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.console import Console

from paperwasp.client.answers import explanation_tree
from paperwasp.client.query import show_answer
from tests import web
from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, run, script_of, scripts_in

SCRIPTS = Path(__file__).parent / "explain_scripts"
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "explain.md"
EXPLAIN = {"trace.level": "1", "trace.explainLevel": "1"}


@pytest.fixture(scope="module", params=["memory", "disk", "streaming"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("explaining")
    with deployed_service(folder) as service:
        deploy_and_feed(service, SCRIPTS, "streaming" if request.param == "streaming" else "index")
        service.mode = request.param  # type: ignore[attr-defined]
        if request.param != "disk":
            yield service
            return
    with deployed_service(folder) as service:
        service.mode = request.param  # type: ignore[attr-defined]
        yield service


def streaming(service: Deployed) -> dict[str, str]:
    return {"streaming.selection": "true"} if service.mode == "streaming" else {}  # type: ignore[attr-defined]


@pytest.mark.parametrize("script", scripts_in(SCRIPTS), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    script = script_of(script, service.mode)  # type: ignore[attr-defined]
    run(service, script, partial(_asked, {**EXPLAIN, **streaming(service)}))


def _asked(asked: Mapping[str, str], url: str, statement: str, *parameters: str) -> str:
    yql = f"select * from music {statement}" if statement.startswith("where") else statement
    given = dict(line.split("=", 1) for line in parameters)
    answer = web.post(url, json={"timeout": "20s", "yql": yql, **asked, **given}, timeout=30)
    root = answer.json()["root"]
    if errors := root.get("errors"):
        return "\n".join(f"{answer.status_code} error {error['code']}: {error['message']}" for error in errors)
    return "\n".join(line for hit in root.get("children", []) for line in _hit(hit))


def _hit(hit: Mapping[str, Any]) -> Iterator[str]:
    yield f"{hit['id'].rpartition(':')[2]} {_number(hit['relevance'])}"
    explanation = hit.get("explanation", {})
    if "note" in explanation:
        yield f"  {explanation['note']}"
    scores = []
    for phase in explanation.get("phases", ()):
        yield f"  {phase['phase']} {_number(phase['score'])}"
        if "note" in phase:
            yield f"    {phase['note']}"
        if "tree" in phase:
            yield from _tree(phase["tree"], 4)
            if "note" not in phase and isinstance(phase["score"], float):
                assert phase["tree"]["value"] == phase["score"], phase
        scores.append(phase["score"])
    assert not scores or scores[-1] == hit["relevance"], hit


def _tree(node: Mapping[str, Any], indent: int) -> Iterator[str]:
    notes = [str(node[name]) for name in ("kind", "operator", "feature") if name in node]
    notes += [f"{name}: {node[name]}" for name in ("taken", "shown", "cut") if name in node]
    value = f"{_number(node['value'])} " if "value" in node else ""
    yield f"{' ' * indent}{value}{node['expression']} [{', '.join(notes)}]"
    for child in node.get("children", ()):
        yield from _tree(child, indent + 2)


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def ask(service: Deployed, **parameters: object) -> list[dict[str, Any]]:
    """The hits of a query."""
    body = {"timeout": "20s", "yql": "select * from music where true", **streaming(service), **parameters}
    root = web.post(f"{service.url}/search/", json=body, timeout=30).json()["root"]
    assert "errors" not in root, root
    hits: list[dict[str, Any]] = root["children"]
    return hits


def test_nothing_is_explained_that_is_not_asked_for(service: Deployed) -> None:
    for asked in ({}, {"trace.explainLevel": 2}, {"trace.level": 9}):
        assert all("explanation" not in hit for hit in ask(service, ranking="words", **asked)), asked


def test_an_explanation_changes_nothing_else(service: Deployed) -> None:
    plain = ask(service, ranking="words")
    explained = ask(service, ranking="words", **EXPLAIN)
    assert [{name: hit[name] for name in hit if name != "explanation"} for hit in explained] == plain


def test_collapsed_hits_and_those_of_a_page_are_explained(service: Deployed) -> None:
    collapsed = ask(service, ranking="plain", collapsefield="year", **EXPLAIN)
    paged = ask(service, ranking="plain", hits=1, offset=1, **EXPLAIN)
    for hit in (*collapsed, *paged):
        [phase] = hit["explanation"]["phases"]
        assert phase["tree"]["value"] == phase["score"] == hit["relevance"]


def test_words_that_are_found_without_scoring_all(service: Deployed) -> None:
    """The sum of bm25 features is found by another kernel: its relevance is that of the tree all the same."""
    for hit in ask(service, yql='select * from music where title contains "blue"', ranking="pruned", **EXPLAIN):
        [phase] = hit["explanation"]["phases"]
        assert phase["tree"]["value"] == hit["relevance"]
        assert "note" not in phase
        terms = [part["children"][0]["value"] for part in phase["tree"]["children"] if "children" in part]
        assert sum(terms) == hit["relevance"]


def test_answers_in_cbor_have_explanations_too(service: Deployed) -> None:
    cbor2 = pytest.importorskip("cbor2")
    asked = {"yql": "select * from music where true", "ranking": "plain", "format": "cbor", **EXPLAIN}
    answer = web.post(f"{service.url}/search/", json={**asked, **streaming(service)}, timeout=30)
    assert cbor2.loads(answer.content)["root"]["children"][0]["explanation"]["phases"][0]["phase"] == "first-phase"


def _blocks() -> list[str]:
    """What stands between fences in the page."""
    return [block.partition("\n")[2].strip() for block in PAGE.read_text().split("```")[1::2]]


def test_the_example_of_the_page(service: Deployed) -> None:
    if service.mode == "streaming":  # type: ignore[attr-defined]
        return  # the page shows two phases, and statistics of words
    profile, command, tree, phase = _blocks()
    schema = (SCRIPTS / "application" / "schemas" / "music.sd").read_text()
    assert " ".join(profile.split()) in " ".join(schema.split())
    asked = {"yql": command.split('"')[1], "ranking": "words", "hits": 1}
    [hit] = ask(service, **asked, **EXPLAIN)
    console = Console(width=120, record=True, file=StringIO())
    console.print(explanation_tree(1, hit))
    assert [line.rstrip() for line in console.export_text().strip().splitlines()] == tree.splitlines()
    assert hit["explanation"]["phases"][1] == orjson.loads(phase)


def test_what_a_person_is_shown(service: Deployed) -> None:
    console = Console(width=200, record=True, file=StringIO())
    body = {"yql": "select * from music where true", **EXPLAIN, **streaming(service)}
    for more in ({"ranking": "twice"}, {"ranking": "choices"}, {"ranking": "together"}, {"sorting": "+year"}):
        show_answer(console, web.post(f"{service.url}/search/", json=body | more, timeout=30).json())
    shown = console.export_text()
    for told in (
        "score (shown above)",
        "not taken: 0 - attribute(plays)",
        "-Infinity  first-phase",
        "not among the hits that the global phase ranks",
    ):
        assert told in shown
    is_streamed = service.mode == "streaming"  # type: ignore[attr-defined]
    # Vespa ranks all hits that are streamed (searchvisitor.cpp), also those that are sorted by an attribute.
    assert ("sorted, without a relevance: the hit was not ranked" in shown) != is_streamed
