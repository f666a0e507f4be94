"""The parameters of a search that bring ranking expressions: `ranking.firstPhase.expression` and its like."""

from __future__ import annotations

from functools import partial
from typing import Final

from paperwasp.application.services_config import EXPRESSIONS
from paperwasp.container.search.parameter_setters import Convert
from paperwasp.container.search.settings import SearchParameters
from paperwasp.errors import IllegalQuery, LanguageError
from paperwasp.ranking.query_expressions import PARAMETERS, check_text

SWITCHED_OFF: Final = (
    f"Ranking expressions in queries are switched off by '{EXPRESSIONS}' in services.xml, or by "
    "'paperwasp serve --no-query-expressions'"
)


def put_expression(field: str, convert: Convert, parameters: SearchParameters, value: str) -> None:
    """Sets an expression; white space alone takes back what a query profile says. Errors: IllegalQuery."""
    parameters.expressions.pop(field, None)
    if not value.strip():
        return
    try:
        check_text(field, value)
    except LanguageError as error:
        raise IllegalQuery(error.message) from None
    parameters.expressions[field] = convert(value)


SETTERS: Final = tuple(((name,), partial(put_expression, field, str)) for field, name in PARAMETERS.items())
"""(name,), and what sets the parameter."""
