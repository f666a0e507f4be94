"""The Model-evaluation API of a container, `/model-evaluation/v1`: which models there are, and evaluations.

Vespa: https://docs.vespa.ai/en/ranking/stateless-model-evaluation.html
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import orjson
from msgspec import Struct

from paperwasp import limits
from paperwasp.application.model_evaluation.binding import bound_values
from paperwasp.application.model_evaluation.functions import Function, NotEvaluated, Values
from paperwasp.application.model_evaluation.models import EvaluatedModel, Models
from paperwasp.base.threads import ThreadPool
from paperwasp.core.budget import budget
from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.document.tensor.json_output import FORMS, tensor_json
from paperwasp.document.tensor.types import NUMBER
from paperwasp.document.tensor.value import Tensor, quoted
from paperwasp.errors import InvalidInput, Overload, PaperwaspError, Timeout, TooLarge, without_frames
from paperwasp.http.cbor import error_as_accepted as short_as_accepted
from paperwasp.http.cbor import whole_as_accepted
from paperwasp.http.messages import Request, Response, decode_form, json_response, path_segments

# The Model-evaluation API: which models there are, what their functions take, and their evaluation.
#
# All methods are alike. The path is read in lower case, as in Vespa; differs: a model or function whose name has upper
# case is found by its name in lower case all the same. Every error is `{"error": …}`: 404 for what there is not, and
# for values that are none for their arguments; 400 for arguments without a value, for forms of tensors that there are
# not, and for an evaluation that would take more memory than it may have; 504 for one that takes too long. Who prefers
# CBOR gets it for all but literals.
#
# Vespa: ModelsEvaluationHandler.java


ROOT: Final = "/model-evaluation/v1"
_EVALUATE: Final = "eval"
_FORM: Final = "application/x-www-form-urlencoded"


def is_model_evaluation(raw_path: str) -> bool:
    """Whether a path is for this API."""
    return raw_path.startswith(ROOT) and raw_path[len(ROOT) : len(ROOT) + 1] in ("", "/")


class EvaluationHandler:
    """Answers `/model-evaluation/v1`. `configure` may be called at any time, from any thread."""

    def __init__(self) -> None:
        self._models = Models()
        self.runs: Final = EvaluationRuns()

    def configure(self, models: Models, memory_bytes: int = limits.QUERY_MEMORY_BYTES) -> None:
        """Serves these models from now on; requests under way keep theirs. `memory_bytes`: of one evaluation."""
        self._models = models
        self.runs.memory_bytes = memory_bytes

    async def handle(self, request: Request) -> Response:
        """The answer. Never raises but for cancellation and defects."""
        try:
            return await self._answer(request, self._models)
        except TooLarge as error:  # what is computed, not what was sent: that is refused before
            return short_as_accepted(request, error_response(InvalidInput(error.message)))
        except PaperwaspError as error:
            return short_as_accepted(request, error_response(error))

    async def _answer(self, request: Request, models: Models) -> Response:
        path = path_segments(request.raw_path[len(ROOT) :].strip("/").lower())
        url = f"{request.base_url}{ROOT}/"
        if path == ("",):
            return short_as_accepted(request, json_response(200, {name: url + name for name in models.by_name}))
        model = models.model(path[0])
        names = path[1:]
        if _EVALUATE not in names:
            return short_as_accepted(request, json_response(200, _described(model, names, url)))
        last = len(names) - 1 - names[::-1].index(_EVALUATE)
        function = model.function(names[:last])
        if len(request.body) + len(request.query) <= limits.QUERY_INLINE_BYTES:
            texts = _read_parameters(request)
        else:
            texts = await asyncio.to_thread(_read_parameters, request)
        answer = Response(200, await self.runs.evaluate(function, texts))
        return answer if is_literal(texts) else await whole_as_accepted(request, answer)


def _read_parameters(request: Request) -> Mapping[str, str]:
    """Read the parameters of the query string, which go first, and of a form. Errors: InvalidInput."""
    query = request.query
    if request.body.count(b"&") + query.count("&") > limits.QUERY_PARAMETERS:
        raise InvalidInput(f"More than {limits.QUERY_PARAMETERS} parameters (QUERY_PARAMETERS in paperwasp.limits)")
    own = decode_form(query)
    if not request.body or request.content_type != _FORM:
        return own
    try:
        return decode_form(request.body.decode()) | own
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The form in the body is not UTF-8 at byte {error.start}") from None


def _described(model: EvaluatedModel, names: tuple[str, ...], url: str) -> Mapping[str, Any]:
    """Describe a model, or the function of it that has these names. Errors: NoSuchThing."""
    own = f"{url}{model.name}/"
    if not names:
        functions = [_function(function, function.name, own) for function in model.functions]
        return {"model": model.name, "functions": functions}
    function = model.function(names)
    asked = ".".join(names)
    name = function.name if asked == function.name.lower() else asked
    return {"model": model.name, **_function(function, name, own)}


def _function(function: Function, name: str, url: str) -> Mapping[str, Any]:
    arguments = [{"name": argument, "type": str(type_)} for argument, type_ in function.arguments.items()]
    info = url + name
    return {"function": name, "info": info, "eval": f"{info}/{_EVALUATE}", "arguments": arguments}


def error_response(error: PaperwaspError) -> Response:
    """The error as this interface says it."""
    return json_response(error.http_status, {"error": error.message})


# Evaluations that wait for a thread, and never on the event loop.
#
# A thread that is free takes what waits for the function, in the order of the requests: of networks that may take
# several rows in one run all of it, of others one request. Nobody waits for others to come.


_THREADS: Final = max(2, os.cpu_count() or 1)
Outcome = bytes | Exception
"""The body of an answer, or why there is none."""


class _Evaluation(Struct, eq=False):
    """A request that waits for its evaluation."""

    texts: Mapping[str, str]
    answer: asyncio.Future[bytes]


class EvaluationRuns:
    """The threads that evaluate, made when they are needed. Asked on one event loop."""

    def __init__(self, threads: int = _THREADS, waiting: int = limits.MODEL_EVALUATIONS_WAITING) -> None:
        """`waiting`: how many requests may wait, or be evaluated, before the rest is refused."""
        self._pool = ThreadPool("model-evaluation", threads)
        self._most = waiting
        self.count = 0
        """Requests that wait, or are evaluated."""
        self.memory_bytes = limits.QUERY_MEMORY_BYTES
        """Bytes that the tensors of one evaluation may take."""
        self._waiting: dict[Function, deque[_Evaluation]] = {}
        self._taking = threading.Lock()

    async def evaluate(self, function: Function, texts: Mapping[str, str]) -> bytes:
        """The body of the answer. Errors: those of binding, evaluating and rendering; Overload; Timeout."""
        undone = max(self.count, self._pool.undone())  # the second has those whose client is gone
        if undone >= self._most:
            raise Overload(f"Rejecting execution due to overload: {undone} requests already wait for evaluation")
        loop = asyncio.get_running_loop()
        evaluation = _Evaluation(texts, loop.create_future())
        with self._taking:
            self._waiting.setdefault(function, deque()).append(evaluation)
        self.count += 1
        try:
            self._pool.submit(self._work, function, loop)
            return await evaluation.answer
        finally:
            self.count -= 1

    def _work(self, function: Function, loop: asyncio.AbstractEventLoop) -> None:
        """Evaluates what waits for the function: nothing, where another thread has taken it."""
        taken = self._take(function)
        if not taken:
            return
        end_work_at(time.monotonic_ns() + limits.MODEL_EVALUATION_SECONDS * 10**9)
        budget.begin(self.memory_bytes)
        try:
            outcomes = outcomes_of(function, [each.texts for each in taken])
        except OutOfTime:
            seconds = limits.MODEL_EVALUATION_SECONDS
            outcomes = [Timeout(f"The evaluation took more than {seconds} s")] * len(taken)
        except PaperwaspError as error:
            outcomes = [without_frames(error)] * len(taken)
        except Exception as error:  # a defect is the answer to those who asked
            outcomes = [error] * len(taken)
        finally:
            end_work_at(0)
            budget.begin(0)
        try:
            loop.call_soon_threadsafe(_settle, taken, outcomes)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def _take(self, function: Function) -> Sequence[_Evaluation]:
        with self._taking:
            waiting = self._waiting.get(function)
            if not waiting:
                return ()
            taken = [waiting.popleft() for _ in range(min(len(waiting), function.most_rows))]
            if not waiting:
                del self._waiting[function]
            return taken


def outcomes_of(function: Function, requests: Sequence[Mapping[str, str]]) -> list[Outcome]:
    """Evaluate a function for each request, given its parameters. Errors: OutOfTime."""
    bound = [_bind(function, texts) for texts in requests]
    results = iter(function.evaluate_all([each[0] for each in bound if not isinstance(each, PaperwaspError)]))
    return [each if isinstance(each, PaperwaspError) else _render(next(results), each[1]) for each in bound]


def _render(result: Tensor | PaperwaspError, form: str | None) -> Outcome:
    return result if isinstance(result, PaperwaspError) else rendered(result, form)


def _bind(function: Function, texts: Mapping[str, str]) -> tuple[Values, str | None] | PaperwaspError:
    """The values, and the form of the answer."""
    try:
        return bound_values(function, texts), check_form(texts.get(PARAMETER))
    except PaperwaspError as error:
        return error


def _settle(evaluations: Sequence[_Evaluation], outcomes: Sequence[Outcome]) -> None:
    for evaluation, outcome in zip(evaluations, outcomes, strict=True):
        if evaluation.answer.done():
            continue
        if isinstance(outcome, bytes):
            evaluation.answer.set_result(outcome)
        else:
            evaluation.answer.set_exception(outcome)


# Tensors as answers of the Model-evaluation API: in the forms of `format.tensors`.
#
# Beside the JSON forms that documents have, `string` and `string-long` are literals. Without the parameter the answer
# has the cells of the form `long`, and the values or blocks of the form `short` beside them, so that who reads either
# finds it. Differs: Vespa answers in the form `short` then.
#
# Vespa: https://docs.vespa.ai/en/ranking/stateless-model-evaluation.html#format.tensors, Tensor.java (toString)


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
