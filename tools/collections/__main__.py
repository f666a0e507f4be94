"""Brings a test collection into files that `paperwasp evaluate` takes: documents.jsonl, queries.tsv and qrels.txt.

    python -m tools.collections cran.tar.gz cranfield
    python -m tools.collections scifact.zip scifact
    python -m tools.collections ir_datasets:vaswani vaswani
    python -m tools.collections pydoc pydoc
    python -m tools.collections --documents CACM/cacm.all --queries CACM/query.text --judgments CACM/qrels.text cacm

The source is a folder, a zip or a tar: with files in SMART's format (Cranfield, CISI, CACM, MEDLINE, ADI), Vaswani's or
TIME's, in BEIR's (SciFact, NFCorpus), or written by this tool; a name of the library ir_datasets, where it is
installed; or `pydoc`, which every machine has: what Python's library says of itself, with the judgments of
examples/pydoc/judged.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from paperwasp.errors import PaperwaspError
from tools.collections.collection import Collection, write
from tools.collections.reading import read, read_three


def main() -> int:
    arguments = _parser().parse_args()
    try:
        collection = _read(arguments)
    except PaperwaspError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    write(collection, arguments.target, arguments.type)
    judgments = sum(map(len, collection.judgments.values()))
    sys.stdout.write(
        f"{len(collection.documents)} documents, {len(collection.queries)} queries, {judgments} judgments "
        f"in {arguments.target}\n"
    )
    if unknown := collection.unknown_documents():
        sys.stdout.write(f"{unknown} judgments are of documents that the collection does not have\n")
    return 0


def _read(arguments: argparse.Namespace) -> Collection:
    three = (arguments.documents, arguments.queries, arguments.judgments)
    if all(three) and arguments.source is None:
        return read_three(*three)
    if arguments.source is None or any(three):
        _parser().error("name a source, or all of --documents, --queries and --judgments")
    return read(arguments.source, arguments.split)


def _parser() -> argparse.ArgumentParser:
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m tools.collections", description=__doc__, formatter_class=shown)
    parser.add_argument("source", nargs="?", help="a folder, an archive, ir_datasets:NAME, or pydoc")
    parser.add_argument("target", type=Path, help="the folder for the three files")
    parser.add_argument("--split", default="test", help="which queries of BEIR count: qrels/SPLIT.tsv")
    parser.add_argument("--type", default="passage", help="the document type of the feed")
    parser.add_argument(
        "--documents", type=Path, help="in SMART's format, where the files are not known by their names"
    )
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--judgments", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
