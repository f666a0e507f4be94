"""All that the grammar has as a function can be bound or aggregated."""

from __future__ import annotations

import pkgutil

from paperwasp.grouping import expressions
from paperwasp.grouping.language import functions
from paperwasp.grouping.node import BINDERS

_AGGREGATORS = functions.AGGREGATORS | {"avg", "stddev", "summary"}
_OTHERWISE_WRITTEN = {"geo_distance": ("geo_distance.km", "geo_distance.miles")}
"""What functions are called once they are read."""
_NOT_WRITTEN_AS_FUNCTIONS = frozenset({"constant", "map", "map_source"})


def test_every_function_of_the_grammar_is_registered() -> None:
    computed = (functions.ALL - _AGGREGATORS) | {"max", "min", "xor"}
    wanted = {name for each in computed for name in _OTHERWISE_WRITTEN.get(each, (each,))}
    assert wanted | _NOT_WRITTEN_AS_FUNCTIONS == BINDERS.keys()


def test_every_family_registers_something() -> None:
    families = {binder.__module__.rpartition(".")[2] for binder in BINDERS.values()}
    assert families == {module.name for module in pkgutil.iter_modules(expressions.__path__)}
