"""The example's packages rank as its README says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import minilm
import paperwasp
from paperwasp.application.build import build_model
from paperwasp.application.package import load_package
from paperwasp.search.features import check_profiles
from tests.children import ROOT
from tools.collections.collection import Collection, Document, write

EXAMPLE = ROOT / "examples" / "relevance"
ROWS = [
    {"id": "far", "title": "remove", "text": "one and two and three and four and five and six: a whole folder"},
    {"id": "near", "title": "remove a folder", "text": "one and two and three and four and five and six: whole"},
    {"id": "meant", "title": "rmtree", "text": "delete all of a directory tree"},
    {"id": "other", "title": "calendar", "text": "the days of a month"},
]


def hits_of(service: paperwasp.Service, profile: str, query: str) -> list[str]:
    return [hit.id.rpartition(":")[2] for hit in service.query({"queryProfile": profile, "query": query})]


def test_words_that_stand_together_come_first() -> None:
    """Both documents have the same words as often, and are of the same length: BM25 alone does not tell them apart."""
    with paperwasp.Service(EXAMPLE / "words") as service:
        service.feed(ROWS, schema="passage")
        first, second = service.query({"queryProfile": "words", "ranking.profile": "bm25", "query": "remove folder"})
        assert first.relevance == second.relevance
        assert hits_of(service, "words", "remove folder") == ["near", "far"]


def test_a_document_without_a_title_is_found_by_its_text() -> None:
    """A text that is joined with one that is not there is none: `(input title || "")` is what keeps it."""
    with paperwasp.Service(EXAMPLE / "words") as service:
        service.feed(
            [{"id": "bare", "text": "a lonely paragraph"}, {"id": "title", "title": "lonely"}], schema="passage"
        )
        assert sorted(hits_of(service, "words", "lonely")) == ["bare", "title"]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with the model of meaning."""
    weights = minilm.wheel_folder()
    if weights is None:
        pytest.skip("the weights of MiniLM are not installed: make minilm")
    application = tmp_path_factory.mktemp("relevance") / "app"
    shutil.copytree(EXAMPLE / "words", application)
    shutil.copytree(EXAMPLE / "meaning", application, dirs_exist_ok=True)
    minilm.write_model(weights, application / "models")
    return application


def test_meaning_finds_what_words_do_not(both: Path) -> None:
    with paperwasp.Service(both) as service:
        service.feed(ROWS, schema="passage")
        assert hits_of(service, "words", "erase a directory with its contents")[0] == "meant"  # `directory`
        assert hits_of(service, "words", "erase everything") == []
        assert hits_of(service, "meaning", "erase everything")[-1] == "other"
        found = service.query({"queryProfile": "both", "query": "remove a folder"})
        assert found[0].id.endswith(":near") and len(found) == 4
        assert all(0 <= hit.relevance <= 2 for hit in found)


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    """In a folder with what a checkout has, over a collection of these rows in place of the library's."""
    if minilm.wheel_folder() is None:
        pytest.skip("the weights of MiniLM are not installed: make minilm")
    for name in ("examples", "tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    documents = [Document(row["id"], row["title"], row["text"]) for row in ROWS]
    write(Collection(documents, {"q": "erase a directory"}, {"q": {"meant": 1}}), tmp_path / "pydoc", "passage")
    blocks = re.findall(r"```sh\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)
    commands = "".join(block for block in blocks if not block.startswith("vespa"))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-eu", "-c", f"{commands.strip()} --json -m nDCG@10"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    measured = json.loads(done.stdout[done.stdout.index("{") :])["rankings"]
    assert [each["name"] for each in measured] == ["default", "bm25", "words", "meaning", "both"]
    assert all(each["measures"]["nDCG@10"]["mean"] == 1 for each in measured)


def test_the_package_with_a_model_is_right_without_its_files() -> None:
    """Its schema and its profiles, on machines without the weights too: all but the component of the model."""
    words = load_package(EXAMPLE / "words")
    files = {**words.files, **load_package(EXAMPLE / "meaning").files}
    services = re.sub(r"<component .*?</component>", "", files["services.xml"].decode(), flags=re.DOTALL)
    model = build_model(type(words)({**files, "services.xml": services.encode()}), check_profiles)
    (schema,) = model.schemas.values()
    assert {"default", "bm25", "words", "meaning", "both"} <= set(schema.rank_profiles)
