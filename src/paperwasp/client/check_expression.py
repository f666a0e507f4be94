"""Checks one ranking expression against an application package, without a service: `paperwasp check --rank`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from paperwasp.application.build import build_model
from paperwasp.application.directory import load_package
from paperwasp.client.excerpts import ERROR_STYLE, describe
from paperwasp.errors import Finding, InvalidPackage, NotFound
from paperwasp.ranking.bm25_notes import bm25_fields, coarse
from paperwasp.ranking.typed_expression import EXPRESSION, TypedExpression
from paperwasp.schema.model import Schema
from paperwasp.text.parsing.nearest import did_you_mean

TypeExpression = Callable[[Schema, str, str], TypedExpression]
"""From a schema, the name of a rank profile of it, and the text of an expression."""

_NAME_STYLE: Final = "bold"


def check_expression(
    application: Path,
    expression: str,
    type_expression: TypeExpression,
    profile: str = "default",
    schema: str = "",
    console: Console | None = None,
) -> bool:
    """Prints what the expression is over a rank profile of each schema that has it, or of one schema. Returns whether
    it is right in all of them.

    Errors: UnreadablePackage; InvalidPackage, whose findings are printed; NotFound for a schema or a profile.
    """
    console = console or Console(highlight=False)
    try:
        package = load_package(application)
        schemas = build_model(package, _nothing).schemas
    except InvalidPackage as error:
        for finding in error.findings:
            for line in describe(finding, package.files):
                console.print(line, soft_wrap=True)
        raise
    fine = True
    for each in _chosen(schemas, schema, profile):
        typed = type_expression(each, profile, expression)
        for line in _lines(typed, expression, coarse(each, bm25_fields(typed.reads))):
            console.print(line, soft_wrap=True)
        fine = fine and not typed.problems and not typed.pending
    return fine


def _nothing(schema: Schema, files: Mapping[str, bytes]) -> Iterable[Finding]:
    return ()


def _chosen(schemas: Mapping[str, Schema], name: str, profile: str) -> Sequence[Schema]:
    """The schema of this name, or all. Errors: NotFound where none has the rank profile."""
    if name and name not in schemas:
        hint = did_you_mean(name, schemas) or f": the application has {', '.join(schemas)}"
        raise NotFound(f"There is no schema '{name}'{hint}")
    asked = [schemas[name]] if name else list(schemas.values())
    found = [schema for schema in asked if profile in schema.rank_profiles]
    if not found:
        known = {each for schema in asked for each in schema.rank_profiles}
        where = f"schema '{name}' has" if name else "the schemas have"
        raise NotFound(f"There is no rank profile '{profile}': {where} {', '.join(sorted(known))}")
    return found


def _lines(typed: TypedExpression, text: str, notes: Iterable[str]) -> Iterator[Text]:
    is_wrong = bool(typed.problems)
    shown = ("wrong", ERROR_STYLE) if is_wrong else (_type_name(typed), "green")
    yield Text.assemble((f"schema {typed.schema}, rank-profile {typed.profile}: ", _NAME_STYLE), shown)
    if typed.reads:
        yield Text(f"  reads: {', '.join(typed.reads)}")
    if typed.phases:
        yield Text(f"  may stand in: {', '.join(typed.phases)}")
    findings = [Finding(problem.bare_message, problem.position, "ERROR") for problem in typed.problems]
    findings += [Finding(f"not executed yet: {what}", None, "ERROR") for what in typed.pending]
    findings += [
        Finding(f"query({name}) is not declared in the profile's inputs: it is a number", None)
        for name in typed.undeclared
    ]
    findings += [Finding(note, None) for note in notes]
    for finding in findings:
        yield from describe(finding, {EXPRESSION: text.encode()})


def _type_name(typed: TypedExpression) -> str:
    if typed.type is None:
        return "not known"
    return "a number" if typed.type.is_number else str(typed.type)
