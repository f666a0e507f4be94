"""The shape of a request: all of it that its prepared query depends on, as a key under which a prepared query is kept.

    names of the parameters → Form, kept      (form, values that shape the query, outline of the YQL) → Shape

What the names alone decide is found once for each list of names: which values shape the query, what sets the others,
and whether a parameter is given twice. Runs on the event loop.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from msgspec import Struct

from paperwasp import limits
from paperwasp.application.query_profiles import NO_QUERY_PROFILES, REFERENCE, QueryProfiles
from paperwasp.base.cache import Cache
from paperwasp.container.search.parameters import full_name, value_setter
from paperwasp.container.search.setters import Setter
from paperwasp.container.search.settings import RequestValues
from paperwasp.query_languages.yql.lifting import Outline, outline_of, value_of

Pairs = Sequence[tuple[str, str]]
_YQL: Final = "yql"
_CACHING: Final = ("nocache", "nocachewrite")
_NAME_BYTES: Final = 64
"""The memory of a name beside its characters."""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_NO_STATEMENT: Final = Outline("")


class Form(Struct, frozen=True, eq=False):
    """The form of a request: what the names of its parameters, in their order, tell."""

    shaping: tuple[int, ...]
    """The places of the parameters whose values shape the query, but for the statement."""
    statement: int | None
    """The place of the YQL that is in force; None: there is none."""
    setters: tuple[tuple[int, Setter], ...]
    """Places of the other parameters, and the setters of their values."""
    repeats: bool
    """Whether a parameter of the answer is given several times, maybe by its aliases: the last is in force."""
    profile: int | None
    """The place of the parameter that names the query profile; None: it is not named."""
    full_names: tuple[str, ...]
    caching: tuple[int, ...]
    """The places of what says whether answers are kept."""


def form_of(names: Sequence[str]) -> Form:
    """The form of a request that gives parameters of these names."""
    lower = [name.lower() for name in names]
    statements = [place for place, name in enumerate(lower) if name == _YQL]
    statement = statements[-1] if statements else None
    setters = [value_setter(name) for name in names]
    answered = [full_name(name) for name in names if name.lower() not in _CACHING]
    return Form(
        tuple(place for place, setter in enumerate(setters) if setter is None and place != statement),
        statement,
        tuple((place, setter) for place, setter in enumerate(setters) if setter is not None),
        len(set(answered)) < len(answered),
        max((place for place, name in enumerate(lower) if name == "queryprofile"), default=None),
        tuple(full_name(name) for name in names),
        tuple(place for place, name in enumerate(lower) if name in _CACHING),
    )


class Forms:
    """The forms of the requests that came last."""

    def __init__(self, forms: int = limits.REQUEST_FORMS, size_bytes: int = limits.REQUEST_FORM_BYTES) -> None:
        """`size_bytes`: of one of them, about. What is larger is not kept."""
        self._forms: Cache[tuple[str, ...], Form] = Cache(entries=forms, largest=size_bytes)

    def __len__(self) -> int:
        return len(self._forms)

    def of(self, pairs: Pairs) -> Form:
        """The form of a request."""
        names = tuple([name for name, _ in pairs])
        found = self._forms.get(names)
        if found is None:
            found = form_of(names)
            self._forms.put(names, found, len(names) * _NAME_BYTES + sum(map(len, names)))
        return found


class Shape(NamedTuple):
    """The shape of one request, and the values of that request beside it."""

    key: Hashable
    pairs: Pairs
    form: Form
    literals: Sequence[str]
    """The literals of the statement, as they are written."""
    is_whole: bool
    """Whether all values are of the shape, since a query profile may use them."""
    filling: Mapping[str, str]
    """The values of a query profile for parameters that the request leaves out."""

    def fixed(self, literals: Sequence[int], names: Sequence[str]) -> Hashable:
        """The values of some literals and parameters."""
        given = dict(self.pairs)
        return tuple([self.literals[number] for number in literals]), tuple([given.get(name) for name in names])

    def values(self, names: Sequence[str], defaults: Sequence[tuple[Setter, str]] = ()) -> RequestValues:
        """The values of the request beside its shape. `names`: the parameters in slots; `defaults`: for those left out.

        Errors: ValueError.
        """
        pairs = self.pairs
        values = RequestValues(given=dict(pairs))
        if self.filling:
            values.given |= self.filling
            values.given.update(zip(self.form.full_names, [value for _, value in pairs], strict=True))
        for setter, value in defaults:
            setter(values, value)
        for place, setter in self.form.setters:
            setter(values, pairs[place][1])
        literals = [value_of(literal) for literal in self.literals] if self.literals else []
        values.slots = [*literals, *[values.given[name] for name in names]]
        return values

    def written(self, names: Sequence[str]) -> tuple[str, ...]:
        """The literals of the statement, as they are written, and the values of the parameters in slots."""
        if not names:
            return tuple(self.literals)
        given = {**self.filling, **dict(self.pairs)}
        return (*self.literals, *[given[name] for name in names])


def shape_of(pairs: Pairs, form: Form, accepted: str, profiles: QueryProfiles = NO_QUERY_PROFILES) -> Shape:
    """The shape of a request whose answer is to be in the format that is accepted, unless it says another."""
    filling: Mapping[str, str] = _NOTHING
    if profiles.has_default or form.profile is not None:
        profile = profiles.plain("" if form.profile is None else pairs[form.profile][1])
        # An empty value takes back what a profile says, which no setter does.
        if profile is None or any(not value or value.startswith(REFERENCE) for _, value in pairs):
            return Shape((form, accepted, *[value for _, value in pairs]), pairs, form, (), True, filling)
        filling = cast(Mapping[str, str], profile.values)
    outline = _NO_STATEMENT
    literals: Sequence[str] = ()
    statement = filling.get(_YQL) if form.statement is None else pairs[form.statement][1]
    if statement is not None:
        outline, literals = outline_of(statement)
    return Shape(
        (form, accepted, outline, *[pairs[place][1] for place in form.shaping]), pairs, form, literals, False, filling
    )
