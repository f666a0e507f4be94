"""The grouping statements of a request: read, checked against the schemas, and made linear requests.

They come from YQL, behind `|`, each perhaps with an annotation; from `select`; and from `select.grouping`.
Differs: attributes are checked in streaming mode, too, where Vespa lets every field be grouped by.
Vespa: GroupingQueryParser, GroupingValidator, com.yahoo.search.yql.YqlParser (fetchPipe), SelectParser
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.container.search.config import Target
from paperwasp.container.search.settings import GroupingParameters, SearchParameters
from paperwasp.document.types import POSITION, PREDICATE, ReferenceType, TensorFieldType
from paperwasp.errors import InvalidQuery, LanguageError
from paperwasp.query_languages.yql import parse_select_grouping
from paperwasp.query_languages.yql.statement import YqlQuery
from paperwasp.schema.model import Field
from paperwasp.search.grouping.continuation import PagePosition, decode
from paperwasp.search.grouping.language import Operation, parse_grouping
from paperwasp.search.grouping.request import Expression, Filter, GroupingRequest, ResultLayout
from paperwasp.search.grouping.request_builder import DEFAULTS, Defaults, converted, layout_of
from paperwasp.search.yql_syntax import YQL, accept_annotations
from paperwasp.text.parsing.tokens import did_you_mean, did_you_mean_sentence

_PIECE: Final = compile_later(
    r"""\"[^\"\\]*(?:\\.[^\"\\]*)*(?:\"|\\?\Z)|'[^'\\]*(?:\\.[^'\\]*)*(?:'|\\?\Z)|/\*.*?(?:\*/|\Z)"""
    r"""|(?://|\#)[^\r\n]*|[^|{}\[\]"'/\#]+|.""",
    re.DOTALL,
)
"""A string, a comment, or anything else. What has no end goes to the end of the text, so that time is linear."""
_Z_CURVE: Final = "_zcurve"
_GMT: Final = compile_later(r"GMT([+-])(\d{1,2})(?::?(\d\d))?")
_SHORT_ZONES: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Names of three letters that Java knows beside those of the tz database (java.time.ZoneId.SHORT_IDS)."""
_UNFIT: Final = (TensorFieldType, ReferenceType)
_CONTINUE: Final = "continue"
"""The parameter with the continuations of `select`."""
_OF_ATTRIBUTES: Final = ("attribute", "array.at", "interpolatedlookup")


class _Step(Struct, frozen=True):
    """One statement as it is written, with the pages that are wanted of it."""

    text: str
    source: str
    """As errors name it: "YQL", "select", or "" for the parameter `select`."""
    positions: tuple[PagePosition, ...] = ()
    has_many: bool = False
    """Whether there may be several statements, with `;` between them."""


class PreparedGrouping(Struct, frozen=True):
    """The groupings of all requests of one shape."""

    layouts: tuple[ResultLayout, ...]
    statement: YqlQuery | None
    settings: GroupingParameters
    targets: tuple[Target, ...]
    has_parameters: bool
    """Whether statements name parameters, or `continue` turns their pages. Then they are read for each request."""

    @property
    def is_repeatable(self) -> bool:
        """Whether the answer does not depend on the time: time zones have other offsets in summer. What is to be
        waited for is waited for each time."""
        return not self.has_parameters and not any(
            each.function in ("now", "debugwait") or each.function.startswith("time.")
            for layout in self.layouts
            for request in layout.requests
            for each in _expressions_of(request)
        )

    def bind(self, given: Mapping[str, str], now_seconds: float) -> tuple[ResultLayout, ...]:
        """The layouts for one request. Errors: InvalidQuery."""
        layouts = _layouts(self.statement, self.settings, self.targets, given) if self.has_parameters else self.layouts
        offset = time_zone_offset_seconds(self.settings.timezone, now_seconds)
        if not offset:
            return layouts
        return tuple(
            replace(layout, requests=tuple(replace(each, time_offset_seconds=offset) for each in layout.requests))
            for layout in layouts
        )


def prepare_grouping(
    parameters: SearchParameters, statement: YqlQuery | None, targets: tuple[Target, ...]
) -> PreparedGrouping | None:
    """The groupings of a request; None: it has none. Errors: InvalidQuery."""
    settings = parameters.grouping
    written = "" if statement is None else statement.grouping
    if not (written or settings.select or settings.select_json):
        return None
    given = parameters.values.given
    layouts = _layouts(statement, settings, targets, given)
    if not layouts:
        return None
    has_parameters = any("@" in text for text in (written, settings.select, settings.select_json)) or (
        bool(settings.select) and _CONTINUE in given
    )
    return PreparedGrouping(layouts, statement, settings, targets, has_parameters)


def _layouts(
    statement: YqlQuery | None, settings: GroupingParameters, targets: Sequence[Target], given: Mapping[str, str]
) -> tuple[ResultLayout, ...]:
    defaults = Defaults(
        DEFAULTS.max_groups if settings.max_groups is None else settings.max_groups,
        DEFAULTS.max_hits if settings.max_hits is None else settings.max_hits,
        DEFAULTS.global_max_groups if settings.global_max_groups is None else settings.global_max_groups,
        DEFAULTS.precision_factor if settings.precision_factor is None else settings.precision_factor,
    )
    layouts: list[ResultLayout] = []
    requests = number = 0
    for step in _steps(statement, settings, given):
        for operation in _operations(step, given):
            if settings.is_validated:
                _check_attributes(operation, targets)
            _check_summaries(operation, targets)
            try:
                layout = layout_of(operation, number, requests, step.positions, defaults)
            except LanguageError as error:
                raise InvalidQuery(error.message) from None
            number += 1
            if layout.requests:
                requests += len(layout.requests)
                layouts.append(layout)
    return tuple(layouts)


def _operations(step: _Step, given: Mapping[str, str]) -> list[Operation]:
    """Errors: InvalidQuery."""
    try:
        operations = parse_grouping(step.text, given.get)
        if len(operations) != 1 and not step.has_many:
            raise LanguageError(f"Expected 1 operation, got {len(operations)}.")
        return operations
    except LanguageError as error:
        raise _refused(error, step.source) from None


def _refused(error: LanguageError, source: str) -> InvalidQuery:
    return InvalidQuery(f"Could not create query from {source}: {error.message}" if source else error.message)


def _steps(statement: YqlQuery | None, settings: GroupingParameters, given: Mapping[str, str]) -> Iterator[_Step]:
    """Errors: InvalidQuery."""
    if statement is not None and statement.grouping:
        for text in _split(statement.grouping):
            yield _annotated(text, given)
    if settings.select_json:
        try:
            steps = parse_select_grouping(settings.select_json)
        except LanguageError as error:
            raise _refused(error, "select") from None
        for text in _split(steps) if steps else ():
            yield _Step(text, "select")
    if settings.select:
        positions = tuple(position for text in given.get(_CONTINUE, "").split() for position in decode(text))
        yield _Step(settings.select, "", positions, has_many=True)


def _split(text: str) -> list[str]:
    """The texts between the `|` that stand in no string and no comment."""
    found: list[list[str]] = [[]]
    for piece in _PIECE.findall(text):
        if piece == "|":
            found.append([])
        else:
            found[-1].append(piece)
    return ["".join(pieces).strip() for pieces in found]


def _annotated(text: str, given: Mapping[str, str]) -> _Step:
    """A statement of YQL and the annotation before it. Errors: InvalidQuery."""
    length = _annotation_length(text)
    if not length:
        return _Step(text, "YQL")
    try:
        tokens = YQL.tokenize(text[:length])

        def parameter() -> str:
            tokens.expect("@")
            name = tokens.expect_kind("identifier").text
            if name not in given:
                tokens.fail(f"parameter '{name}' is not set")
            return given[name]

        values = accept_annotations(tokens, parameter) or {}
        tokens.expect_end()
        continuations = values.get("continuations", [])
        if not isinstance(continuations, list):
            raise LanguageError("Expected a list as the value of 'continuations'")
    except LanguageError as error:
        raise _refused(error, "YQL") from None
    positions = tuple(position for each in continuations for position in decode(str(each)))
    return _Step(text[length:].strip(), "YQL", positions)


def _annotation_length(text: str) -> int:
    """How long the annotation is with which a step begins; 0: it has none."""
    if not text.startswith(("{", "[")):
        return 0
    depth = at = 0
    for piece in _PIECE.findall(text):
        at += len(piece)
        depth += (piece in "{[") - (piece in "}]") if len(piece) == 1 else 0
        if not depth:
            return at
    return len(text)


def _check_attributes(operation: Operation, targets: Sequence[Target]) -> None:
    """Errors: InvalidQuery for what is no attribute of a cluster that is searched."""
    names = {name for each in _expressions(operation) for name in _attributes(each)}
    sources = [each for each in _expressions(operation) if each.function == "map_source"]
    for target in targets:
        for name in sorted(names):
            if _attribute_named(target, name) is None:
                fields = [field for schema in target.schemas for field in schema.fields.values()]
                near = did_you_mean_sentence(name, {field.name for field in fields if field.attribute is not None})
                raise InvalidQuery(
                    f"Grouping request references attribute '{name}' which is not available in cluster "
                    f"'{target.cluster.id}'.{near}"
                )
        for expression in sources:
            _check_key_source(target, expression)


def _check_summaries(operation: Operation, targets: Sequence[Target]) -> None:
    """Errors: InvalidQuery for a summary class that no document type has."""
    known = {name for target in targets for schema in target.schemas for name in schema.summaries}
    for expression in _expressions(operation):
        if expression.function == "summary" and (name := str(expression.arguments[0])) and name not in known:
            raise InvalidQuery(f"unknown summary class: {name}{did_you_mean(name, known)}")


def _check_key_source(target: Target, expression: Expression) -> None:
    prefix, source, _ = expression.arguments
    key = _attribute_named(target, f"{prefix!s}.key")
    found = _attribute_named(target, str(source))
    assert key is not None and found is not None
    wanted = key.type.inner[0] if key.type.inner else key.type
    one = found.type.inner[0] if found.type.inner else found.type
    if one != wanted:
        raise InvalidQuery(
            f"Grouping request references key source attribute '{found.name}' with data type '{one.name}' that is "
            f"different than data type '{wanted.name}' of key attribute '{key.name}'"
        )
    if found.type.inner:
        raise InvalidQuery(
            f"Grouping request references key source attribute '{found.name}' which is not of single value type"
        )


def _attribute_named(target: Target, name: str) -> Field | None:
    """The attribute of a name that can be grouped by. A position has one with another name."""
    if name.endswith(_Z_CURVE):
        base = name.removesuffix(_Z_CURVE)
        for field in target.fields_named(base):
            one = field.type.inner[0] if field.type.inner else field.type
            if field.attribute is not None and one == POSITION:
                return field
    for field in target.fields_named(name):
        if field.attribute is not None and field.type != PREDICATE and not isinstance(field.type, _UNFIT):
            return field
    return None


def _attributes(expression: Expression) -> Iterator[str]:
    """The names of the attributes that an expression itself names."""
    name, arguments = expression.function, expression.arguments
    if name in _OF_ATTRIBUTES:
        yield str(arguments[0])
    elif name in ("map", "map_source"):
        yield f"{arguments[0]!s}.key"
        yield f"{arguments[0]!s}.value{arguments[2]!s}"
        if name == "map_source":
            yield str(arguments[1])


def _expressions(operation: Operation) -> Iterator[Expression]:
    """All expressions of an operation and those below it, as content nodes have them."""
    for each in operation.walk():
        tops = [*each.outputs, *each.order, *([] if each.group_by is None else [each.group_by])]
        for top in (*tops, *_of_filter(each.filter)):
            yield from _walk(converted(top))


def _expressions_of(request: GroupingRequest) -> Iterator[Expression]:
    for level in request.levels:
        orders = [key.expression for key in level.order]
        outputs = [each.expression for each in level.aggregations]
        for top in (level.expression, *orders, *outputs, *_of_filter(level.filter)):
            yield from _walk(top)
    for aggregation in request.aggregations:
        yield from _walk(aggregation.expression)


def _of_filter(predicate: Filter | None) -> Iterator[Expression]:
    if predicate is not None:
        if predicate.expression is not None:
            yield predicate.expression
        for part in predicate.parts:
            yield from _of_filter(part)


def _walk(expression: Expression) -> Iterator[Expression]:
    yield expression
    for argument in expression.arguments:
        if isinstance(argument, Expression):
            yield from _walk(argument)


def time_zone_offset_seconds(name: str, now_seconds: float) -> int:
    """The seconds to be added to UTC in a time zone. Names that Java does not know are GMT, as in Vespa."""
    if (match := _GMT.fullmatch(name)) is not None:
        sign, hours, minutes = match.groups()
        offset = int(hours) * 3600 + int(minutes or 0) * 60
        return 0 if int(hours) > 23 or int(minutes or 0) > 59 else offset if sign == "+" else -offset
    zone = _zone(name)
    offset_of = None if zone is None else datetime.fromtimestamp(now_seconds, UTC).astimezone(zone).utcoffset()
    return int((offset_of or timedelta()).total_seconds())


@lru_cache(maxsize=128)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(_SHORT_ZONES.get(name, name))
    except (OSError, ValueError, KeyError):
        return None
