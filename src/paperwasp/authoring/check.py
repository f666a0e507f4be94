"""Checks an application package as a compiler would: every finding with its place, the line, and a caret below it.

Nothing is deployed and no service asked. What ranks is checked by the caller's `check_schema`, as at a deployment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from paperwasp import limits
from paperwasp.application.build import build_model
from paperwasp.application.changes.find import find_changes
from paperwasp.application.changes.found import Changes, describe_actions, describe_refusals
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage, load_package
from paperwasp.client.terminal import ERROR_STYLE, LEVELS, counted, describe
from paperwasp.core.steps import WorkOutOfTime, bounded_work
from paperwasp.errors import Finding, InvalidPackage, NotFound
from paperwasp.ranking.typed_expression import EXPRESSION, TypedExpression, bm25_fields, coarse
from paperwasp.schema.model import Schema
from paperwasp.text.parsing.tokens import did_you_mean

SchemaCheck = Callable[[Schema, Mapping[str, bytes]], Iterable[Finding]]


class Checked(Struct, frozen=True):
    """A package, its model if it has one, and all findings about it."""

    package: ApplicationPackage
    model: ApplicationModel | None
    findings: tuple[Finding, ...]


def check_application(
    application: Path,
    check_schema: SchemaCheck,
    against: Path | None = None,
    console: Console | None = None,
    *,
    allow_python: bool = False,
) -> bool:
    """Prints the findings about the package in `application`. Returns whether it could be deployed.

    With `against` also what it needs to take the place of that application. `allow_python`: components that are
    written in Python are loaded, which runs their code. Errors: UnreadablePackage.
    """
    console = console or Console(highlight=False)
    checked = _check(application, check_schema, allow_python)
    for finding in sorted(checked.findings, key=_by_place):
        for line in describe(finding, checked.package.files):
            console.print(line, soft_wrap=True)
    refused = 0
    if checked.model is not None and against is not None:
        active = _active(against, check_schema, allow_python)
        refused = _tell_changes(console, against, find_changes(active, checked.model), checked.model)
    counts = {level: sum(finding.level == level for finding in checked.findings) for level in LEVELS}
    counts["ERROR"] += refused
    console.print(_summary(application, counts, checked.model), soft_wrap=True)
    return not counts["ERROR"]


def _check(application: Path, check_schema: SchemaCheck, allow_python: bool) -> Checked:
    package = load_package(application)
    end_ns = time.monotonic_ns() + int(limits.CHECK_SECONDS * 1e9)
    try:
        with bounded_work(end_ns, limits.PREPARE_STEP_BYTES):
            model = build_model(package, check_schema, _today(), allow_python=allow_python)
    except WorkOutOfTime as error:
        late = f"The package was not checked within {limits.CHECK_SECONDS:g} seconds (CHECK_SECONDS): {error}"
        return Checked(package, None, (Finding(late, level="ERROR"),))
    except InvalidPackage as error:
        return Checked(package, None, error.findings or (Finding(error.message, level="ERROR"),))
    return Checked(package, model, model.findings)


def _active(against: Path, check_schema: SchemaCheck, allow_python: bool) -> ApplicationModel:
    """The application to compare with. Errors: InvalidPackage for one that could never have been active."""
    checked = _check(against, check_schema, allow_python)
    if checked.model is None:
        errors = sum(finding.level == "ERROR" for finding in checked.findings)
        raise InvalidPackage(
            f"The application in '{against}' cannot be compared with: it has {counted(errors, 'error')}"
        )
    return checked.model


def _tell_changes(console: Console, against: Path, changes: Changes, model: ApplicationModel) -> int:
    """Prints what the change needs; how many refusals nothing allows."""
    refused = changes.find_refused(model.overrides, _today())
    for text in describe_actions(changes):
        console.print(Text(text), soft_wrap=True)
    for refusal in changes.refusals:
        if refusal not in refused:
            console.print(Text(f"{refusal.validation_id} is allowed: {refusal.message}"), soft_wrap=True)
    if refused:
        console.print(Text.assemble(("error: ", ERROR_STYLE), describe_refusals(refused)), soft_wrap=True)
    if changes == Changes():
        console.print(Text(f"To take the place of '{against}' it needs nothing but its activation"), soft_wrap=True)
    return len(refused)


def _by_place(finding: Finding) -> tuple[bool, str, int, int]:
    """The order of findings: those without a place come last."""
    place = finding.position
    return (False, place.source, place.line, place.column) if place else (True, "", 0, 0)


def _summary(application: Path, counts: Mapping[str, int], model: ApplicationModel | None) -> Text:
    found = ", ".join(counted(counts[level], name) for level, name in LEVELS.items() if counts[level])
    if model is None or counts["ERROR"]:
        return Text(f"'{application}' cannot be deployed: {found}", style=ERROR_STYLE)
    schemas, clusters = len(model.schemas), len(model.content_clusters)
    parts = f"{counted(schemas, 'schema')} in {counted(clusters, 'content cluster')}"
    return Text(f"'{application}' can be deployed: {parts}" + (f"; {found}" if found else ""), style="green")


def _today() -> date:
    return datetime.now(UTC).date()


# One ranking expression against a package: `paperwasp check --rank`.


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
