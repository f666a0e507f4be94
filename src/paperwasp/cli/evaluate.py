"""The commands `evaluate` and `features`: rankings measured by judgments of people, and training data for models that
rank.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import CONTAINER, ContainerUrl, JudgedHits


def evaluate(
    queries: Annotated[Path, typer.Option("--queries", "-q", help="Queries: id, tab and text; JSON; TREC topics.")],
    judgments: Annotated[
        Path, typer.Option("--judgments", "-j", help="Which documents are relevant: TREC's qrels, columns, or JSON.")
    ],
    application: Annotated[
        Path | None, typer.Argument(help="A package to start here; without it, the service at --url is asked.")
    ] = None,
    feed: Annotated[list[Path] | None, typer.Option("--feed", help="Documents for the package.")] = None,
    profile: Annotated[
        list[str] | None, typer.Option("--profile", "-p", help="A rank profile to measure; may be given several times.")
    ] = None,
    expression: Annotated[
        list[str] | None,
        typer.Option("--expression", "-e", help="A first-phase expression to measure, over the first profile."),
    ] = None,
    query_profile: Annotated[
        list[str] | None,
        typer.Option("--query-profile", help="A query profile to measure: it says how documents match, too."),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", help="nDCG@10, AP, R@100, RR@10, P@5: those of ir-measures."),
    ] = None,
    yql: Annotated[str | None, typer.Option("--yql", help="How documents match; the text is @query.")] = None,
    parameter: Annotated[list[str] | None, typer.Option("--parameter", help="name=value, for each query.")] = None,
    hits: JudgedHits = 100,
    id_field: Annotated[
        str | None,
        typer.Option("--id-field", help="The field with the judgments' ids; else the end of document ids."),
    ] = None,
    changes: Annotated[int, typer.Option("--changes", min=0, help="How many queries that won and lost are shown.")] = 3,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a page of HTML: plots, and why queries won and lost.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything that is measured as JSON.")] = False,
    url: ContainerUrl = CONTAINER,
) -> None:
    """Say whether a ranking is better: measures with their intervals, and the queries that won and lost.

    The first ranking is what the others are compared with. An interval that does not hold 0, and a small p, say that a
    difference is more than chance.

        paperwasp evaluate -q queries.tsv -j qrels.txt --profile bm25 --profile mine
        paperwasp evaluate app --feed docs.jsonl -q queries.tsv -j qrels.txt -e 'bm25(title)'
    """
    from paperwasp.relevance.command import Asked, evaluate_rankings

    asked = Asked(queries, judgments, application, tuple(feed or ()), url, yql, tuple(parameter or ()), hits, id_field)
    evaluate_rankings(
        asked,
        profile or [],
        expression or [],
        query_profile or [],
        measure or [],
        changes=changes,
        report_file=report,
        as_json=json,
    )


def features(
    queries: Annotated[Path, typer.Option("--queries", "-q", help="Queries, as of evaluate.")],
    judgments: Annotated[Path, typer.Option("--judgments", "-j", help="Judgments, as of evaluate.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the rows go: .parquet, .csv or .jsonl.")],
    application: Annotated[
        Path | None, typer.Argument(help="A package to start here; without it, the service at --url is asked.")
    ] = None,
    feed: Annotated[list[Path] | None, typer.Option("--feed", help="Documents for the package.")] = None,
    profile: Annotated[str, typer.Option("--profile", "-p", help="The profile with match-features.")] = "default",
    feature: Annotated[
        list[str] | None, typer.Option("--feature", help="A rank feature, in place of those of the profile.")
    ] = None,
    yql: Annotated[str | None, typer.Option("--yql", help="How documents match; the text is @query.")] = None,
    parameter: Annotated[list[str] | None, typer.Option("--parameter", help="name=value, for each query.")] = None,
    hits: JudgedHits = 100,
    id_field: Annotated[str | None, typer.Option("--id-field", help="The field with the judgments' ids.")] = None,
    url: ContainerUrl = CONTAINER,
) -> None:
    """Collect match-features of judged documents, to train a model on.

    The table has a row for each hit of each query, and a column for each feature.

        paperwasp features -q queries.tsv -j qrels.txt --profile candidates -o features.parquet
    """
    from paperwasp.relevance.command import Asked, write_features

    asked = Asked(queries, judgments, application, tuple(feed or ()), url, yql, tuple(parameter or ()), hits, id_field)
    write_features(asked, profile, feature or [], output)
