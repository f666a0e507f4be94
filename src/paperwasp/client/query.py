"""Searches, and shows the hits the way a person wants to read them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import orjson
from msgspec import Struct
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from paperwasp.client.answers import (
    explanation_tree,
    groups_table,
    hits_of,
    is_root,
    plain_table,
    write_csv,
    write_lines,
)
from paperwasp.client.connection import ANYBODY, TIMEOUT_SECONDS, Access, Connection
from paperwasp.client.query_text import parameters_of_text
from paperwasp.errors import InvalidInput

EXPLAIN: Final = ("trace.level=1", "trace.explainLevel=1")
"""Parameters that ask why hits rank where they do."""
_OPEN, _CLOSE = "<hi>", "</hi>"
_TITLES: Final = ("title", "qualified_name", "name", "headline", "subject")
_HIDDEN: Final = frozenset(("sddocname", "documentid", "matchfeatures", "summaryfeatures", "rankfeatures"))
_EXCERPT_CHARACTERS: Final = 200
_LINE_CHARACTERS: Final = 60
_BEFORE_CHARACTERS: Final = 60
_HIGHLIGHT: Final = "bold yellow"
_LONGEST_QUERY: Final = 8192
"""Characters of a query string; longer ones are sent as a body."""
_SHOWN_BYTES: Final = 200
_EXTRA_SECONDS: Final = 5.0
"""How much longer than the service's timeout the answer is waited for."""


def search(url: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """The answer of the search API. Errors: Unreachable."""
    answer: dict[str, Any] = Connection(url).json("GET", "/search/?" + urlencode(parameters))
    return answer


def parameters_of(text: str | None, more: Iterable[str]) -> dict[str, str]:
    """Words become a user query, `select …` is YQL; `name=value` pairs are added. Errors: InvalidInput."""
    parameters = {} if text is None else parameters_of_text(text)
    for pair in more:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput(f"'{pair}' is not a parameter like name=value")
        parameters[name] = value
    return parameters


class Question(Struct, frozen=True):
    """A query for the search API."""

    parameters: Mapping[str, str]
    """By URL, or beside the members of `body`, where there is one."""
    body: Mapping[str, Any] | None = None
    """Parameters as a JSON object."""
    timeout_seconds: float | None = None


class Answer(NamedTuple):
    """The answer to a query; `content` is the JSON object."""

    status: int
    content: dict[str, Any]

    def errors(self) -> list[str]:
        """Return the errors of the answer, in words."""
        errors = self.content.get("root", {}).get("errors", ())
        found = [_describe_error(error) for error in errors]
        if self.status != 200 and not found:
            found = [f"status {self.status}: {self.content.get('message', self.content)}"]
        return found


def read_body(path: Path) -> dict[str, Any]:
    """The parameters in a file of JSON. Errors: InvalidInput."""
    try:
        content = orjson.loads(path.read_bytes())
    except OSError as error:
        raise InvalidInput(f"Could not read '{path}': {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"{path}, line {error.lineno}, column {error.colno}: no JSON: {error.msg}") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{path}: expected an object with the parameters of a query")
    return content


def ask(url: str, question: Question, access: Access = ANYBODY) -> Answer:
    """Asks the search API. Errors: Unreachable, InvalidInput for an answer that is no JSON object."""
    parameters = dict(question.parameters)
    waits = TIMEOUT_SECONDS
    if question.timeout_seconds is not None:
        parameters["timeout"] = f"{round(question.timeout_seconds * 1000)}ms"
        waits = question.timeout_seconds + _EXTRA_SECONDS
    query = urlencode(parameters)
    with closing(Connection(url, waits, access)) as connection:
        if question.body is None and len(query) <= _LONGEST_QUERY:
            status, content = connection.request("GET", f"/search/?{query}")
        else:
            body = orjson.dumps({**(question.body or {}), **parameters})
            status, content = connection.request("POST", "/search/", body)
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        shown = content[:_SHOWN_BYTES].decode(errors="replace")
        raise InvalidInput(f"{url} answered with status {status}, and no JSON: {shown}")
    return Answer(status, found)


def show_query(url: str, question: Question, form: str = "pretty", access: Access = ANYBODY) -> bool:
    """Prints the answer to a query in one of the `FORMATS`; what went wrong to the standard error. True: nothing did.

    Errors: Unreachable, InvalidInput.
    """
    answer = ask(url, question, access)
    console = Console()
    hits = hits_of(answer.content)
    if form == "pretty":
        show_answer(console, answer.content)
    elif form == "json":
        console.print_json(orjson.dumps(answer.content).decode())
    elif form == "table":
        console.print(plain_table(hits))
    else:
        sys.stdout.write(write_lines(hits) if form == "jsonl" else write_csv(hits))
    errors = answer.errors()
    if form != "pretty" or "errors" not in answer.content.get("root", {}):
        for error in errors:
            Console(stderr=True).print(Text(error, "red"), soft_wrap=True)
    return not errors


def _describe_error(error: Mapping[str, Any]) -> str:
    return f"{error.get('summary', 'Error')} ({error.get('code')}): {error.get('message')}"


def show_answer(console: Console, answer: Mapping[str, Any]) -> None:
    """A table of the hits, why they rank so where that was asked, one of the groups of each grouping statement, and
    whatever went wrong."""
    root = answer.get("root", {})
    for error in root.get("errors", ()):
        console.print(_describe_error(error), style="red", markup=False)
    children = root.get("children", ())
    hits = [child for child in children if not is_root(child)]
    total = root.get("fields", {}).get("totalCount", 0)
    if hits:
        console.print(hits_table(hits))
    for number, hit in enumerate(hits, 1):
        if "explanation" in hit:
            console.print(explanation_tree(number, hit))
    for child in children:
        if is_root(child):
            console.print(groups_table(child, _in_one_line))
    documents = root.get("coverage", {}).get("documents")
    searched = f" of {documents} documents" if documents is not None else ""
    if hits or "errors" not in root:
        console.print(f"{total} {'match' if total == 1 else 'matches'}{searched}, {len(hits)} shown", style="dim")
    for steps in steps_of(answer.get("trace", {})):
        console.print("; ".join(f"{step} by {by}" for step, by in steps.items()), style="dim", markup=False)


def steps_of(trace: object) -> Iterator[Mapping[str, str]]:
    """Finds in a trace, by document type, what ran each step of the query: a named kernel, or the general code."""
    if isinstance(trace, Mapping):
        if trace.get("tag") == "steps":
            yield trace["steps"]
            return
        trace = list(trace.values())
    if isinstance(trace, Sequence) and not isinstance(trace, str):
        for part in trace:
            yield from steps_of(part)


def hits_table(hits: Sequence[Mapping[str, Any]]) -> Table:
    """One row a hit: its place, its score, and what is in it."""
    table = Table(show_header=True, header_style="dim", box=None, padding=(0, 1, 1, 0))
    table.add_column("#", justify="right", style="dim")
    table.add_column("score", justify="right", style="cyan")
    table.add_column("hit")
    for number, hit in enumerate(hits, 1):
        table.add_row(str(number), f"{float(hit['relevance']):.3f}", _describe(hit))
    return table


def _describe(hit: Mapping[str, Any]) -> Group:
    fields = hit.get("fields", {})
    title_field = next((name for name in _TITLES if fields.get(name)), None)
    title = highlight(str(fields[title_field])) if title_field else Text(str(hit["id"]))
    title.stylize("bold")
    lines = [title]
    for name, value in fields.items():
        if name not in _HIDDEN and name != title_field:
            lines.append(Text(f"{name}: ", "dim") + highlight(excerpt(_as_text(value))))
    return Group(*lines)


def _in_one_line(hit: Mapping[str, Any]) -> Text:
    """A hit of a group: its score, and its title or else its fields."""
    fields = {name: _as_text(value) for name, value in hit.get("fields", {}).items() if name not in _HIDDEN}
    title = next((fields[name] for name in _TITLES if fields.get(name)), None)
    shown = title or ", ".join(f"{name}: {text}" for name, text in fields.items()) or str(hit["id"])
    return Text(f"{float(hit['relevance']):.3f} ", "cyan") + highlight(excerpt(shown, _LINE_CHARACTERS))


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    return orjson.dumps(value).decode()


def excerpt(text: str, characters: int = _EXCERPT_CHARACTERS) -> str:
    """The part of a long text around its first highlighted word."""
    if len(text) <= characters:
        return text
    start = max(0, text.find(_OPEN) - _BEFORE_CHARACTERS)
    start = text.find(" ", start) + 1 if start else 0
    end = start + characters
    cut = text[start:end].rsplit(" ", 1)[0] if end < len(text) else text[start:]
    return ("… " if start else "") + cut + (" …" if end < len(text) else "")


def highlight(text: str) -> Text:
    """Makes a styled text of one in which <hi> and </hi> are around what matched."""
    shown = Text()
    for number, part in enumerate(text.split(_OPEN)):
        matched, closed, rest = part.partition(_CLOSE)
        if number and closed:
            shown.append(matched, _HIGHLIGHT)
            shown.append(rest)
        else:
            shown.append(part)
    return shown
