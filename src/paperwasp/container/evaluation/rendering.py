"""Tensors as answers of the Model-evaluation API: in the forms of `format.tensors`.

Beside the JSON forms that documents have, `string` and `string-long` are literals. Without the parameter the answer
has the cells of the form `long`, and the values or blocks of the form `short` beside them, so that who reads either
finds it. Differs: Vespa answers in the form `short` then.

Vespa: https://docs.vespa.ai/en/ranking/stateless-model-evaluation.html#format.tensors, Tensor.java (toString)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import orjson

from paperwasp.application.model_evaluation.functions import NotEvaluated
from paperwasp.document.tensor.json_output import FORMS, tensor_json
from paperwasp.document.tensor.types import NUMBER
from paperwasp.document.tensor.value import Tensor, quoted

PARAMETER: Final = "format.tensors"


def rendered(tensor: Tensor, form: str | None) -> bytes:
    """The body of the answer. `form`: that of `check_form`; None: none is asked for."""
    if form is None:
        return orjson.dumps({**tensor_json(tensor), **tensor_json(tensor, "long")})
    if form in _TEXTS:
        return _TEXTS[form](tensor).encode()
    return orjson.dumps(tensor_json(tensor, form))


def check_form(given: str | None) -> str | None:
    """The form that is asked for, in lower case. Errors: NotEvaluated where there is no such form."""
    if given is None:
        return None
    form = given.lower()
    if form not in FORMS and form not in _TEXTS:
        raise NotEvaluated(f"Unknown tensor format 'Optional[{given}]'")
    return form


def is_literal(parameters: Mapping[str, str]) -> bool:
    """Whether the answer is a literal, and no JSON."""
    return parameters.get(PARAMETER, "").lower() in _TEXTS


def short_text(tensor: Tensor) -> str:
    """The literal in its shortest form: `tensor(x[2]):[1.0, 2.0]`, `tensor(x{}):{a:1.0, b:2.0}`."""
    type_ = tensor.type
    if type_.is_number:
        return f"{NUMBER}:{{{_number(tensor.cells[0])}}}"
    if not type_.mapped:
        return f"{type_}:{_dense(tensor.cells[0])}"
    rows = sorted(zip(tensor.labels, tensor.cells, strict=True), key=lambda row: row[0])
    if len(type_.mapped) == 1:
        parts = (f"{quoted(label)}:{_dense(cells)}" for (label,), cells in rows)
        return f"{type_}:{{{', '.join(parts)}}}"
    names = [dimension.name for dimension in type_.mapped]
    parts = (f"{_address(names, labels)}:{_dense(cells)}" for labels, cells in rows)
    return f"{type_}:{{{', '.join(parts)}}}"


def long_text(tensor: Tensor) -> str:
    """The literal with an address for each cell: `tensor(x[2]):{{x:0}:1.0, {x:1}:2.0}`."""
    names = [dimension.name for dimension in (*tensor.type.mapped, *tensor.type.indexed)]
    cells = []
    for labels, row in sorted(zip(tensor.labels, tensor.cells, strict=True), key=lambda row: row[0]):
        for place in np.ndindex(*tensor.type.shape):
            address = _address(names, (*labels, *map(str, place)))
            cells.append(f"{address}:{_number(row[place])}")
    return f"{tensor.type}:{{{', '.join(cells)}}}"


def _address(names: list[str], labels: tuple[str, ...]) -> str:
    pairs = sorted(zip(names, labels, strict=True))
    return f"{{{','.join(f'{name}:{quoted(label)}' for name, label in pairs)}}}"


def _dense(cells: Any) -> str:
    if np.ndim(cells) == 0:
        return _number(cells)
    return f"[{', '.join(map(_dense, cells))}]"


def _number(cell: Any) -> str:
    """A cell as Java writes a number of its type."""
    if cell.dtype == np.int8:
        return repr(float(cell))
    if not np.isfinite(cell):
        return "NaN" if np.isnan(cell) else "Infinity" if cell > 0 else "-Infinity"
    return repr(float(str(cell)))


_TEXTS: Final[Mapping[str, Callable[[Tensor], str]]] = {"string": short_text, "string-long": long_text}
FORMS_OF_ANSWERS: Final = (*FORMS, *_TEXTS)
"""All values of `format.tensors`."""
