"""What `paperwasp evaluate` and `paperwasp features` do."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from paperwasp.base.records import dataclass
from paperwasp.embedded.frames import write_parquet
from paperwasp.errors import InvalidInput
from paperwasp.relevance.asking import asking
from paperwasp.relevance.collection import check_fit, read_judgments, read_queries
from paperwasp.relevance.evaluation import evaluate
from paperwasp.relevance.measuring import DEFAULT, check_measures
from paperwasp.relevance.rankings import YQL, Ask, Ranking, identity_of
from paperwasp.relevance.report import report
from paperwasp.relevance.showing import show
from paperwasp.relevance.training import collect_features

_YQL: Final = "yql"
_PROFILE: Final = "ranking.profile"
_QUERY_PROFILE: Final = "queryProfile"
_EXPRESSION: Final = "ranking.firstPhase.expression"
_FEATURES: Final = "ranking.matchFeatures.expression"
_TIMEOUT: Final = "20s"
_EXPLAINED_HITS: Final = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked, and whom."""

    queries: Path
    judgments: Path
    application: Path | None
    feed: Sequence[Path]
    url: str
    yql: str | None
    parameters: Sequence[str]
    hits: int
    id_field: str | None

    def to_parameters(self) -> dict[str, object]:
        """What is asked with each query. Errors: InvalidInput for what is no `name=value`."""
        asked: dict[str, object] = {"hits": self.hits, "timeout": _TIMEOUT}
        for text in self.parameters:
            name, is_pair, value = text.partition("=")
            if not is_pair:
                raise InvalidInput(f"--parameter: '{text}' is not name=value")
            asked[name] = value
        return asked


def evaluate_rankings(
    asked: Asked,
    profiles: Sequence[str],
    expressions: Sequence[str],
    query_profiles: Sequence[str],
    measures: Sequence[str],
    *,
    changes: int,
    report_file: Path | None,
    as_json: bool,
) -> None:
    """Measures, and shows what came of it. Errors: BadCollection, NoMeasures; those of the service."""
    if report_file is not None:
        _check_folder(report_file)
    queries, judgments = read_queries(asked.queries), read_judgments(asked.judgments)
    judged = check_fit(queries, judgments)
    # Feeding may take long, and is for nothing where a measure is mistyped.
    check_measures(judgments, judged, measures or DEFAULT)
    rankings = list(_rankings(asked.yql, profiles, expressions, query_profiles))
    parameters = asked.to_parameters()
    with asking(asked.url, asked.application, asked.feed) as ask, _progress() as progress:
        task = progress.add_task("Asking", total=len(judged) * len(rankings))
        found = evaluate(
            ask,
            queries,
            judgments,
            judged,
            rankings,
            measures or DEFAULT,
            parameters,
            asked.id_field,
            lambda: progress.advance(task),
        )
        if report_file is not None:
            page = report(found, changes, lambda *given: _explained(ask, parameters, *given))
            report_file.write_text(page, encoding="utf-8")
    console = Console()
    if as_json:
        console.print_json(orjson.dumps(found.to_json()).decode())
    else:
        show(found, console, changes)


def _rankings(
    yql: str | None, profiles: Sequence[str], expressions: Sequence[str], query_profiles: Sequence[str]
) -> Iterator[Ranking]:
    """The rank profiles, the expressions over the first of them, and the query profiles, which may say how documents
    match where the command does not. Without any, the rank profile `default`."""
    names = profiles or ([] if query_profiles and not expressions else ["default"])
    matching = {_YQL: yql or YQL}
    yield from (Ranking(name, {**matching, _PROFILE: name}) for name in names)
    yield from (Ranking(text, {**matching, _PROFILE: names[0], _EXPRESSION: text}) for text in expressions)
    given = {} if yql is None else {_YQL: yql}
    yield from (Ranking(name, {**given, _QUERY_PROFILE: name}) for name in query_profiles)


def _explained(ask: Ask, parameters: Mapping[str, object], ranking: Ranking, text: str) -> list[Mapping[str, Any]]:
    why = {"trace.level": 1, "trace.explainLevel": 1, "hits": _EXPLAINED_HITS}
    answer = ask({**parameters, **ranking.parameters, **why, "query": text})
    hits: list[Mapping[str, Any]] = answer["root"].get("children", [])
    return hits


def write_features(asked: Asked, profile: str, features: Sequence[str], output: Path) -> None:
    """Writes the rows. Errors: InvalidInput, BadCollection; those of the service."""
    queries, judgments = read_queries(asked.queries), read_judgments(asked.judgments)
    wanted = check_fit(queries, judgments)
    if output.suffix not in _WRITERS:
        raise InvalidInput(f"'{output}' is to end in one of {', '.join(_WRITERS)}")
    _check_folder(output)
    parameters = {**asked.to_parameters(), _YQL: asked.yql or YQL, _PROFILE: profile}
    if features:
        parameters[_FEATURES] = " ".join(features)
    with asking(asked.url, asked.application, asked.feed) as ask, _progress() as progress:
        task = progress.add_task("Asking", total=len(wanted))
        rows = list(
            collect_features(
                ask,
                queries,
                judgments,
                wanted,
                parameters,
                lambda hit: identity_of(hit, asked.id_field),
                lambda: progress.advance(task),
            )
        )
    _WRITERS[output.suffix](output, rows)
    relevant = sum(row["relevance"] > 0 for row in rows)
    Console().print(f"{len(rows)} rows of {len(wanted)} queries, {relevant} of them relevant, in {output}")


def _check_folder(output: Path) -> None:
    """Errors: InvalidInput where a file could not be written, before anything is asked for it."""
    if not output.parent.is_dir():
        raise InvalidInput(f"'{output}' cannot be written: there is no folder '{output.parent}'")


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def _write_json_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("wb") as file:
        for row in rows:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


_WRITERS: Final = {".parquet": write_parquet, ".csv": _write_csv, ".jsonl": _write_json_lines}


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
