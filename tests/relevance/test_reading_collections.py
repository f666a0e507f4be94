"""Collections in the formats in which they are published become one form, and what is wrong is said with its line."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from paperwasp.relevance.collection import BadCollection, read_judgments, read_queries
from tests.children import ROOT
from tools.collections import reading
from tools.collections.collection import Collection, Document, write
from tools.collections.pydoc import JUDGED
from tools.collections.reading import read, read_three

DOCUMENTS = """.I 1
.T
wasps of the
 meadow
.A
someone
.W
wasps of the
 meadow
they build with paper .
.I 2
.W
nests under roofs
.X
1 5 2
.I 3
.T
bees
.W
"""
QUERIES = ".I 001\n.W\nwho builds\nwith paper\n.I 004\n.T\nroofs\n.W\nand what is under them\n"
SMART = {"tiny.all": DOCUMENTS, "tiny.qry": QUERIES, "tinyqrel": "1 1 2\n1 3 -1\n2 2 4\n", "README": "see cran\n"}
EXPECTED = Collection(
    [
        Document("1", "wasps of the meadow", "they build with paper ."),
        Document("2", "", "nests under roofs"),
        Document("3", "bees", ""),
    ],
    {"1": "who builds with paper", "4": "roofs and what is under them"},
    {"1": {"1": 1, "3": 0}, "4": {"2": 1}},
)


def folder_of(path: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def test_smart_with_queries_counted_by_place(tmp_path: Path) -> None:
    """Queries 1 and 4 are judged as 1 and 2, as Cranfield's are."""
    assert read(str(folder_of(tmp_path, SMART))) == EXPECTED


@pytest.mark.parametrize(
    "judgments",
    [
        "1 1 0 0.000000\n4 2 0 0.000000\n",  # CISI's columns
        "01 0001 0 0\n04 0002 0 0\n",  # CACM's
        "1 0 1 1\n4 0 2 1\n",  # MEDLINE's
        "1 1\n4 2\n",
        "1\n 1 \n /\n4\n 2 /\n",  # Vaswani's
    ],
)
def test_columns_of_judgments(judgments: str, tmp_path: Path) -> None:
    """Queries are judged by their numbers where all of these are there."""
    found = read(str(folder_of(tmp_path, {**SMART, "tinyqrel": judgments})))
    assert found.judgments == {"1": {"1": 1}, "4": {"2": 1}}


def test_texts_that_end_with_a_slash(tmp_path: Path) -> None:
    files = {
        "doc-text": "1\npaper  nests\nof wasps\n   /\n2\nhoney\n   /\n   /\n",
        "query-text": "1\nWHO HAS HONEY\n/\n",
        "rlv-ass": "1\n  2\n   /\n",
    }
    found = read(str(folder_of(tmp_path, files)))
    assert found.documents == [Document("1", "", "paper nests of wasps"), Document("2", "", "honey")]
    assert found.queries == {"1": "WHO HAS HONEY"} and found.judgments == {"1": {"2": 1}}


def test_files_beside_those_that_are_needed(tmp_path: Path) -> None:
    """Vectors of numbers and an older file of judgments, as Vaswani and MEDLINE have them, are known by their names."""
    others = {
        "doc-vecs": "1 3 5 /\n2 3 /\n",
        "tinyqrel.OLD": "1 2 0\n",
        "term-mst": "1 2 3\n",
        "term-text": "1\na\n/\n",
    }
    assert read(str(folder_of(tmp_path, {**SMART, **others}))) == EXPECTED


TIME = {
    "TIME.ALL": "*TEXT 017 01/04/63 PAGE 020\n\nPAPER OF\n\nWASPS\n*TEXT 020 01/04/63 PAGE 021\n\nHONEY\n\n*STOP\n\n",
    "TIME.QUE": "*FIND     2\n\n WHO HAS\n\nHONEY\n\n*FIND     46\n\n PAPER\n\n*STOP\n",
    "TIME.REL": "2   2\n\n46   1   2\n",
    "TIME.STP": "A\nOF\n",
}


def test_texts_of_time(tmp_path: Path) -> None:
    """Its judgments count documents by their places: 1 is *TEXT 017."""
    found = read(str(folder_of(tmp_path, TIME)))
    assert found.documents == [Document("1", "", "PAPER OF WASPS"), Document("2", "", "HONEY")]
    assert found.queries == {"2": "WHO HAS HONEY", "46": "PAPER"}
    assert found.judgments == {"2": {"2": 1}, "46": {"1": 1, "2": 1}}


def test_judgments_of_documents_that_are_not_there_are_counted(tmp_path: Path) -> None:
    """As in the other formats."""
    found = read(str(folder_of(tmp_path, {**TIME, "TIME.REL": "2 2\n46 1 3 0\n"})))
    assert found.judgments["46"] == {"1": 1, "3": 1, "0": 1} and found.unknown_documents() == 2
    assert found.known().judgments == {"2": {"2": 1}, "46": {"1": 1}}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("TIME.REL", "2 3\n46 4\n", "No document of the judgments is in the collection: judgments name them like '3'"),
        ("TIME.QUE", "*FIND\n", "TIME.QUE, line 1: expected a number, found '*FIND'"),
        ("TIME.QUE", "nothing", "Expected one file with queries, found none"),
        ("more", "1 1\n", "Expected one file with judgments, found TIME.REL, more"),
    ],
)
def test_what_is_wrong_with_time(name: str, text: str, message: str, tmp_path: Path) -> None:
    folder_of(tmp_path, {**TIME, name: text})
    with pytest.raises(BadCollection) as refused:
        read(str(tmp_path))
    assert message in str(refused.value)


def beir_files(judgments: str = "query-id\tcorpus-id\tscore\nq1\td1\t2\n") -> dict[str, str]:
    corpus: list[dict[str, object]] = [
        {"_id": "d1", "title": "Nests", "text": "made of\npaper"},
        {"_id": "d2", "text": "honey"},
    ]
    queries: list[dict[str, object]] = [
        {"_id": "q0", "text": "not of this split"},
        {"_id": "q1", "text": "paper", "metadata": {}},
    ]
    lines = {"corpus.jsonl": corpus, "queries.jsonl": queries}
    return {
        **{f"small/{name}": "".join(json.dumps(row) + "\n" for row in rows) for name, rows in lines.items()},
        "small/qrels/test.tsv": judgments,
    }


BEIR = Collection(
    [Document("d1", "Nests", "made of paper"), Document("d2", "", "honey")], {"q1": "paper"}, {"q1": {"d1": 2}}
)


@pytest.mark.parametrize("kind", ["folder", "zip", "tar.gz"])
def test_beir_in_folders_and_archives(kind: str, tmp_path: Path) -> None:
    source = tmp_path / f"small.{kind}"
    if kind == "folder":
        folder_of(source, beir_files())
    elif kind == "zip":
        with zipfile.ZipFile(source, "w") as archive:
            for name, text in beir_files().items():
                archive.writestr(name, text)
    else:
        archive_of(source, *((name, text.encode()) for name, text in beir_files().items()))
    assert read(str(source)) == BEIR


def archive_of(path: Path, *members: tuple[str, bytes | str]) -> Path:
    """A tar with files, and with symbolic links to what is named."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
            else:
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    return path


def test_links_of_an_archive_are_what_they_lead_to(tmp_path: Path) -> None:
    files = {name: text.encode() for name, text in beir_files().items()}
    corpus = files.pop("small/corpus.jsonl")
    linked = ("small/corpus.jsonl", "../texts/all"), ("texts/folder", "../small")
    assert read(str(archive_of(tmp_path / "a.tar.gz", *files.items(), ("texts/all", corpus), *linked))) == BEIR


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("../out", b"x")], "'../out' leads out of the folder"),
        ([("a/../../out", b"x")], "leads out of the folder"),
        ([("/nowhere/out", b"x")], "'/nowhere/out' leads out of the folder"),
        ([("a", "/nowhere"), ("a/out", b"x")], "there is no collection in it"),
        ([("a", "a")], "could not be unpacked"),
        ([("a", b"x"), ("a/out", b"x")], "could not be unpacked"),
        ([("a", bytes(99)), ("b", "a"), ("c", "a")], "would become 297 bytes; at most 200 are unpacked"),
    ],
)
def test_no_archive_writes_anywhere_else_or_too_much(
    members: list[tuple[str, bytes | str]], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "ARCHIVE_BYTES", 200)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = archive_of(tmp_path / "a.tar.gz", *members)
    with pytest.raises(BadCollection) as refused:
        read(str(source))
    assert message in str(refused.value)
    assert list(tmp_path.iterdir()) == [source]


def test_a_name_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = SimpleNamespace(
        docs_iter=lambda: [SimpleNamespace(doc_id="d1", title="Nests", text="made of\npaper"),
                           SimpleNamespace(doc_id="d2", abstract="honey")],
        queries_iter=lambda: [SimpleNamespace(query_id="q1", text="paper")],
        qrels_iter=lambda: [SimpleNamespace(query_id="q1", doc_id="d1", relevance=2)],
    )  # fmt: skip
    library = SimpleNamespace(load=lambda name: {"small": dataset}[name])
    monkeypatch.setitem(sys.modules, "ir_datasets", library)
    assert read("ir_datasets:small") == BEIR


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write(EXPECTED, tmp_path, "passage")
    assert read(str(tmp_path)) == EXPECTED
    assert read_queries(tmp_path / "queries.tsv") == EXPECTED.queries
    assert read_judgments(tmp_path / "qrels.txt") == EXPECTED.judgments
    first = json.loads((tmp_path / "documents.jsonl").read_text().splitlines()[0])
    assert first == {
        "put": "id:passage:passage::1",
        "fields": {"title": "wasps of the meadow", "text": "they build with paper ."},
    }


def test_files_in_latin_1(tmp_path: Path) -> None:
    folder_of(tmp_path, SMART)
    (tmp_path / "tiny.all").write_bytes(DOCUMENTS.replace("bees", "abeilles à miel").encode("latin-1"))
    assert read(str(tmp_path)).documents[2].title == "abeilles à miel"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("tiny.all", ".I 1\nwithout a section\n", "tiny.all, line 2: expected a section like .T or .W"),
        ("tiny.all", ".I 1\n.W\na\n.I\n.W\nb\n", "tiny.all, line 4: .I without a number"),
        ("tiny.all", ".I 1\n.W\na\n.I 1\n.W\nb\n", "tiny.all: number 1 is there twice"),
        ("tinyqrel", "1 1 2\n1\n", "tinyqrel, line 2: expected the numbers of a query and a document"),
        ("tinyqrel", "1 1 2\n3 2 1\n", "tinyqrel: query 3 is neither the number nor the place of one of 2"),
        ("tinyqrel", "1 7\n", "No document of the judgments is in the collection: judgments name them like '7'"),
        ("tinyqrel", "1 1 .\n", "tinyqrel, line 1: '.' is not a relevance"),
        ("other.rel", "1 1\n", "Expected one file with judgments, found other.rel, tinyqrel"),
        ("more.all", DOCUMENTS, "Expected one file with documents, found more.all, tiny.all"),
    ],
)
def test_what_is_wrong_with_smart(name: str, text: str, message: str, tmp_path: Path) -> None:
    folder_of(tmp_path, {**SMART, name: text})
    with pytest.raises(BadCollection) as refused:
        read(str(tmp_path))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"small/corpus.jsonl": '{"_id": "d1", "text": "a"}\n{"_id": \n'}, "corpus.jsonl, line 2: not JSON"),
        ({"small/corpus.jsonl": '{"_id": "d1"}\n'}, "corpus.jsonl, line 1: expected a text as 'text'"),
        ({"small/queries.jsonl": "[]\n"}, "queries.jsonl, line 1: expected an object"),
        ({"small/qrels/test.tsv": "q1\td1\tmuch\nq1\td2\tmuch\n"}, "test.tsv, line 2"),
        ({"small/qrels/test.tsv": "q9\td1\t1\n"}, "No query has a relevant document"),
    ],
)
def test_what_is_wrong_with_beir(files: dict[str, str], message: str, tmp_path: Path) -> None:
    folder_of(tmp_path, {**beir_files(), **files})
    with pytest.raises(BadCollection) as refused:
        read(str(tmp_path))
    assert message in str(refused.value)


def test_sources_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    (tmp_path / "cut.zip").write_bytes(b"PK\x05\x06" + bytes(18) + b"rest")
    for name, message in (
        ("nowhere", "no folder or archive"),
        ("text", "not a folder, zip or tar"),
        ("", "no collection"),
    ):
        with pytest.raises(BadCollection, match=message):
            read(str(tmp_path / name))


def test_texts_of_vaswani_without_an_end(tmp_path: Path) -> None:
    files = {"doc-text": "1\na\n/\nb\n", "query-text": "1\na\n/\n", "rlv-ass": "1\n1\n/\n", "other": "1\na\n"}
    folder_of(tmp_path, files)
    with pytest.raises(BadCollection, match=r"doc-text, line 4: expected a number"):
        read(str(tmp_path))
    with pytest.raises(BadCollection, match=r"other: the text of 1 does not end with a slash"):
        read_three(tmp_path / "other", tmp_path / "query-text", tmp_path / "rlv-ass")


def test_the_command(tmp_path: Path) -> None:
    folder_of(tmp_path, {**SMART, "other.rel": "1 1\n"})

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tools.collections", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    refused = run(str(tmp_path), str(tmp_path / "out"))
    assert refused.returncode == 1 and "found other.rel, tinyqrel: name the three files" in refused.stderr
    parts = {"documents": "tiny.all", "queries": "tiny.qry", "judgments": "tinyqrel"}
    options = [f"--{option}={tmp_path / name}" for option, name in parts.items()]
    done = run(*options, str(tmp_path / "out"))
    assert done.returncode == 0 and done.stdout.startswith("3 documents, 2 queries, 3 judgments"), done.stderr
    assert read(str(tmp_path / "out")) == EXPECTED


def test_the_collection_that_every_machine_has() -> None:
    """Other versions of Python have a few other names, and no distutils."""
    queries, judgments = read_queries(JUDGED / "queries.tsv"), read_judgments(JUDGED / "qrels.txt")
    assert list(queries) == list(judgments) and all(any(each.values()) for each in judgments.values())
    collection = read("pydoc")
    assert len(collection.queries) > 0.9 * len(queries) and len(collection.documents) > 4000
    assert collection.unknown_documents() == 0
    assert (
        Document("shutil.rmtree", "shutil rmtree", collection_text(collection, "shutil.rmtree")) in collection.documents
    )


def collection_text(collection: Collection, name: str) -> str:
    (text,) = (document.text for document in collection.documents if document.id == name)
    assert "delete a directory tree" in text
    return text
