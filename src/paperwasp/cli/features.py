"""The command `features`: training data for models that rank."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import CONTAINER, ContainerUrl, JudgedHits


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
