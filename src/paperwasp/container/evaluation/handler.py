"""The Model-evaluation API: which models there are, what their functions take, and their evaluation.

All methods are alike. The path is read in lower case, as in Vespa; differs: a model or function whose name has upper
case is found by its name in lower case all the same. Every error is `{"error": …}`: 404 for what there is not, and for
values that are none for their arguments; 400 for arguments without a value, for forms of tensors that there are not,
and for an evaluation that would take more memory than it may have; 504 for one that takes too long.
Who prefers CBOR gets it for all but literals.

Vespa: ModelsEvaluationHandler.java
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from paperwasp import limits
from paperwasp.application.model_evaluation.functions import Function
from paperwasp.application.model_evaluation.models import EvaluatedModel, Models
from paperwasp.container.evaluation.rendering import is_literal
from paperwasp.container.evaluation.runs import EvaluationRuns
from paperwasp.errors import InvalidInput, PaperwaspError, TooLarge
from paperwasp.http.cbor import error_as_accepted as short_as_accepted
from paperwasp.http.cbor import whole_as_accepted
from paperwasp.http.messages import Request, Response, decode_form, json_response, path_segments

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
        texts = await _parameters(request)
        answer = Response(200, await self.runs.evaluate(function, texts))
        return answer if is_literal(texts) else await whole_as_accepted(request, answer)


async def _parameters(request: Request) -> Mapping[str, str]:
    """The parameters of the query string, which go first, and of a form. Errors: InvalidInput."""
    if len(request.body) + len(request.query) <= limits.QUERY_INLINE_BYTES:
        return _read_parameters(request)
    return await asyncio.to_thread(_read_parameters, request)


def _read_parameters(request: Request) -> Mapping[str, str]:
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
    """What there is to know of a model, or of the function of it that has these names. Errors: NoSuchThing."""
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
