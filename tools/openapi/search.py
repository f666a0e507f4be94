"""The Search API: its parameters are the rows of `parameter_table.PARAMETERS`.

A row's setter says what a value is converted by, which gives the type and the bounds, and what it sets, which gives
the default. What it means is in docs/reference/search-parameters.md, from where it is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from paperwasp import limits
from paperwasp.container.search import parameters as table
from paperwasp.container.search import setters, values
from paperwasp.container.search.settings import SearchParameters
from paperwasp.container.timeouts import timeout_ms
from paperwasp.document.tensor.json_output import FORMS
from tools.openapi.parts import (
    BOOLEAN,
    CBOR,
    COUNT,
    DURATION,
    INT_MAX,
    JSON,
    LONG_MAX,
    NUMBER,
    STRING,
    Json,
    answer,
    enum,
    operation,
    query,
    ref,
)

_TAG: Final = "search"
_PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "search-parameters.md"
_FRACTION: Final[Json] = {**NUMBER, "minimum": 0, "maximum": 1}
_COUNT: Final[Json] = {**COUNT, "maximum": INT_MAX}
_NAMES: Final[Json] = {**STRING, "description": "Names between commas."}

TYPES: Final[Mapping[Callable[..., Any], Json]] = {
    str: STRING,
    str.lower: STRING,
    table.or_default: STRING,
    table.true_or_false: BOOLEAN,
    table.gram_match: enum("all", "any", "weakAnd", "phrase", "near", "onear"),
    values.boolean: BOOLEAN,
    values.budget_ms: DURATION,
    values.callback: {**STRING, "pattern": r"^([A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*)?$"},
    values.count: _COUNT,
    values.element_gap: {"type": ["integer", "string"]},
    values.explain_level: {"type": "integer", "minimum": 0, "maximum": 3},
    values.fraction: _FRACTION,
    values.freshness: {**STRING, "pattern": r"^(now)?\s*(-?\s*[0-9]{0,15})?$"},
    values.from_one: {**NUMBER, "minimum": 1},
    values.hits_of_window: _COUNT,
    values.items: _COUNT,
    values.integer: {"type": "integer", "minimum": -INT_MAX, "maximum": INT_MAX},
    values.language_tag: {**STRING, "pattern": "^([A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8}){0,8})?$"},
    values.level: {"type": "integer", "minimum": 0, "maximum": 9},
    values.long_count: {**COUNT, "maximum": LONG_MAX},
    values.names: _NAMES,
    values.names_of_json: {**STRING, "description": "A JSON array of names."},
    values.number: NUMBER,
    values.positive: {"type": "integer", "minimum": 1, "maximum": INT_MAX},
    values.renderer: enum(*values.FORMATS),
    values.search_path: STRING,
    values.share: _FRACTION,
    values.tensor_form: enum(*FORMS),
    timeout_ms: DURATION,
}
"""What a value is converted by → its schema."""
_BOUNDS: Final[Mapping[str, int]] = {"hits": limits.MAX_HITS, "offset": limits.MAX_OFFSET}
"""The highest values where no query profile sets others."""
_SHOWN_DEFAULTS: Final = {"timeout": f"{limits.QUERY_TIMEOUT_MS}ms", "ranking.softtimeout.factor": 0.5}
_OF_SETTERS: Final[Mapping[Any, Json]] = {
    table.PARAMETERS[[names[0] for names, *_ in table.PARAMETERS].index("model.type")][1]: STRING,
}
_OPEN: Final = {
    "input": r"^input\.query\(.+\)$",
    "features": r"^ranking\.features\..+$",
    "properties": r"^ranking\.properties\..+$",
    "gaps": r"^ranking\.elementGap\..+$",
    "sizes": r"^collapsesize\..+$",
}
"""Names of which the user chooses a part."""
_EXAMPLES: Final[Mapping[str, Json]] = {
    "words": {"yql": "select * from music where userQuery()", "query": "blue", "ranking": "popular", "hits": 5},
    "vector": {
        "yql": "select title from music where {targetHits: 10}nearestNeighbor(embedding, q)",
        "input.query(q)": [0.1, 0.2, 0.3],
        "timeout": "2s",
    },
    "groups": {"yql": "select * from music where true limit 0 | all(group(artist) max(3) each(output(count())))"},
}
_STATUSES: Final = (400, 401, 403, 404, 405, 408, 413, 414, 429, 431, 500, 502, 503, 504, 507)


@cache
def meanings() -> Mapping[str, str]:
    """Name or alias of a parameter → what becomes of it, and what it means."""
    found: dict[str, str] = {}
    for line in _PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) == 6 and cells[3] in ("executed", "no effect", "refused"):
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cells[4]).replace("\\|", "|")
            said = f"{text[:1].upper()}{text[1:]}." if text else ""
            state = {"executed": "", "no effect": "Without effect here.", "refused": "Refused where it asks for it."}
            for name in re.findall(r"`([^`]+)`", f"{cells[1]} {cells[2]}"):
                found[name] = " ".join(filter(None, (said, state[cells[3]])))
    return found


def schema_of(name: str, setter: setters.Setter) -> Json:
    """The schema of a row of the table, by its full name and its setter."""
    if setter in _OF_SETTERS:
        return dict(_OF_SETTERS[setter])
    assert isinstance(setter, partial), name
    place, convert = setter.args
    found = _schema_of_values(convert)
    if name in _BOUNDS:
        found["maximum"] = _BOUNDS[name]
    default = _SHOWN_DEFAULTS.get(name, _default(setter, place))
    return {**found, "default": default} if default is not None and default != "" else found


def _schema_of_values(convert: Any) -> Json:
    if not isinstance(convert, partial):
        return dict(TYPES[convert])
    function, arguments = convert.func, convert.args
    if function is setters.convert_said:
        return _schema_of_values(arguments[0])
    if function is values.word_of:
        return enum(*arguments[0].values())
    if function is values.integer:
        return {"type": "integer", "minimum": -LONG_MAX, "maximum": LONG_MAX}
    if function is setters.refuse_flag_but:
        return {**BOOLEAN, "const": arguments[0]}
    if function is setters.refuse_all_but:
        return enum(*(word for word in arguments[0] if word))
    return dict(TYPES[function])


def _default(setter: partial[None], place: Any) -> Any:
    """What the parameters have where the request says nothing, as far as JSON has it."""
    parameters = SearchParameters()
    if setter.func in (setters.set_own, setters.set_said):
        owner: Any = parameters if hasattr(parameters, place) else parameters.values
        found = getattr(owner, place)
    elif setter.func in (setters.set_of_group, setters.set_said_of_group):
        found = getattr(getattr(parameters, place[0]), place[1])
    else:
        return None
    return found if isinstance(found, str | int | float) else None


def parameters() -> Iterator[Json]:
    """The parameters of the query string; each alias by itself."""
    for names, setter, _ in table.PARAMETERS:
        for name in names:
            text = meanings()[name]
            yield query(name, schema_of(names[0], setter), text if name == names[0] else f"{text} As {names[0]}.")
    free: Json = {
        "type": "object",
        "patternProperties": dict.fromkeys(_OPEN.values(), STRING),
        "additionalProperties": STRING,
    }
    text = (
        "Inputs, rank features, rank properties, and parameters of the application's own, which YQL reads as @name."
        " Names are found in any case."
    )
    yield {**query("more", free, text), "style": "form", "explode": True}


def _body_schema() -> Json:
    members = {name: {"description": meanings()[name]} for names, _, kind in table.PARAMETERS for name in names}
    return {
        "type": "object",
        "description": 'The parameters by their names. An object is a group: {"ranking": {"profile": "x"}} is'
        " `ranking.profile`; only inputs, and select.where, select.grouping and select.fields, have objects and arrays"
        " as values.",
        "properties": members,
    }


def paths() -> dict[str, dict[str, Any]]:
    """The one path; it is found without its last slash, and with more behind it, too."""
    content: dict[str, Any] = {JSON: ref("SearchResult"), CBOR: ref("SearchResult"), "text/xml": STRING}
    said = "The result; also with errors in it, where there are hits."
    responses = {"200": answer(said, content)}
    for status in _STATUSES:
        responses[str(status)] = answer("The result has errors, and no hits.", content)
    nobody = {"anyOf": [ref("SearchResult"), ref("Error")]}
    said = "There is no application yet, or it has no content that answers."
    responses["503"] = answer(said, {**content, JSON: nobody, CBOR: nobody})
    responses["404"] = answer("The container has no `search`.", {JSON: nobody, CBOR: nobody})
    body: Json = {
        "description": "Parameters; those of the query string go before them.",
        "required": False,
        "content": {
            JSON: {"schema": _body_schema(), "examples": {name: {"value": each} for name, each in _EXAMPLES.items()}},
            CBOR: {"schema": _body_schema()},
            "application/x-www-form-urlencoded": {"schema": {"type": "object", "additionalProperties": STRING}},
        },
    }
    listed = list(parameters())
    return {
        "/search/": {
            "parameters": listed,
            "get": operation("search", "The documents that match a query.", _TAG, responses),
            "post": operation("searchByBody", "The documents that match a query.", _TAG, responses, body=body),
        }
    }
