"""The second part of the demo: searches by meaning, beside the search by words and both together.

It needs the weights of a model, which `make minilm` installs. The texts are the first sentences of what the standard
library says of its functions and classes; the service makes their vectors, for as long as the demo has time.
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

import minilm
from feeding import Fed, feed, progress_bar
from index_pydoc import documents, installation_roots
from paperwasp.client.deploy import deploy_package
from paperwasp.client.query import search

HERE = Path(__file__).parent
FEED_SECONDS = 20.0
"""How long vectors are made; what is left then is left out."""
TRIED = 100
"""How many show how fast vectors are made here."""
TEXT_CHARACTERS = 160
HITS_SHOWN = 4
LEFT_OUT = re.compile(r"(?:tkinter|idlelib|distutils|turtledemo|lib2to3|ensurepip)\b")
QUESTIONS = (
    "how long does my code take to run",
    "remove a folder with everything in it",
    "guess which kind of picture a file is",
)
WAYS: tuple[tuple[str, str, str], ...] = (
    ("words", "lexical", "userQuery()"),
    ("meaning", "semantic", "{targetHits: 100}nearestNeighbor(embedding, q)"),
    ("both", "hybrid", "userQuery() or {targetHits: 100}nearestNeighbor(embedding, q)"),
)
"""Title, rank profile, and the condition of the query."""


def show_meaning(console: Console, url: str, config_url: str) -> None:
    """Deploys an embedder, feeds passages, and asks in three ways. Says so where there is no model."""
    weights = minilm.wheel_folder()
    if weights is None or not minilm.can_write():
        missing = "the weights of MiniLM are not installed (make minilm)" if weights is None else "there is no onnx"
        console.print(f"\nSearch by meaning is left out: {missing}", style="yellow", highlight=False)
        return
    console.print("\n[bold]By meaning[/bold]: a model makes vectors of text, when it is fed and when it is asked")
    with tempfile.TemporaryDirectory(prefix="paperwasp-demo-") as folder:
        application = Path(folder) / "application"
        shutil.copytree(HERE / "application", application)
        shutil.copytree(HERE / "meaning", application, dirs_exist_ok=True)
        minilm.write_model(weights, application / "models")
        for line in deploy_package(config_url, application):
            console.print(line, highlight=False)
    feed_passages(console, url)
    for question in QUESTIONS:
        console.print()
        console.print(Text(question, "bold"))
        console.print(side_by_side(url, question))


def feed_passages(console: Console, url: str) -> None:
    """Feeds a few, and then as many more as there is time for at the rate of these."""
    found = list(passages())
    random.Random(len(QUESTIONS)).shuffle(found)  # what there is no time for is of all modules
    started = time.monotonic()
    first = fed(console, url, found[:TRIED])
    rate = first.ok / first.seconds
    rest = fed(console, url, found[TRIED:][: int(rate * (FEED_SECONDS - first.seconds))])
    count, seconds = first.ok + rest.ok, time.monotonic() - started
    console.print(f"{count} of {len(found)} passages in {seconds:.1f} s, each with its vector", highlight=False)
    for error in (*first.errors, *rest.errors):
        console.print(error, style="red", markup=False)


def fed(console: Console, url: str, chosen: Sequence[dict[str, Any]]) -> Fed:
    """Feeds these passages, with a bar that says how far it is."""
    with progress_bar(console) as progress:
        task = progress.add_task("Embedding", total=len(chosen))
        return feed(url, chosen, lambda count: progress.update(task, completed=count))


def passages() -> Iterator[dict[str, Any]]:
    """What the public functions and classes of the standard library are for."""
    for document in documents(installation_roots()[:1]):
        fields = document["fields"]
        is_wanted = fields["kind"] in ("function", "class") and fields["is_public"]
        if is_wanted and fields["documentation_words"] > 3 and not LEFT_OUT.match(fields["module"]):
            name = fields["qualified_name"]
            text = " ".join(fields["documentation"].split())[:TEXT_CHARACTERS]
            yield {"put": f"id:python:passage::{name}", "fields": {"name": name, "text": text}}


def side_by_side(url: str, question: str) -> Table:
    """The best hits for a question in each of the ways, beside each other."""
    shown = Table(box=None, padding=(0, 2, 0, 0), expand=True)
    columns = []
    for title, profile, condition in WAYS:
        started = time.perf_counter()
        root = search(url, parameters(question, profile, condition))["root"]
        elapsed_ms = (time.perf_counter() - started) * 1000
        if "errors" in root:
            raise SystemExit(f"{question}: {root['errors'][0]['message']}")
        shown.add_column(f"{title} ({elapsed_ms:.0f} ms)", style="cyan", no_wrap=True, ratio=1)
        names = [hit["fields"]["name"] for hit in root.get("children", [])]
        columns.append(names + [""] * (HITS_SHOWN - len(names)))
    for row in zip(*columns, strict=True):
        shown.add_row(*row)
    return shown


def parameters(question: str, profile: str, condition: str) -> dict[str, str]:
    """The parameters of a search for a question in one way."""
    found = {"yql": f"select name from passage where {condition}", "query": question, "type": "any"}
    found |= {"ranking": profile, "hits": str(HITS_SHOWN), "timeout": "10s"}
    if profile != "lexical":
        found["input.query(q)"] = "embed(minilm, @query)"
    return found
