"""The Model-evaluation API, which a container has whose services.xml asks for it. All of its methods are alike."""

from __future__ import annotations

from typing import Any, Final

from paperwasp.container.model_evaluation import FORMS_OF_ANSWERS, PARAMETER
from tools.openapi.parts import (
    CBOR,
    JSON,
    STRING,
    Json,
    answer,
    enum,
    errors,
    in_path,
    json_answer,
    operation,
    query,
    ref,
)

_TAG: Final = "model evaluation"
_MODEL: Final = in_path("model", STRING, "The name of the model, in any case.")
_FUNCTION: Final = in_path("function", STRING, "The name of one of its functions; `serving/output` for signatures.")
_FORMS: Final = query(
    PARAMETER, enum(*FORMS_OF_ANSWERS), "How the result is written; without it as `long` and `short`."
)
_ARGUMENTS: Final[Json] = {
    **query(
        "arguments",
        {"type": "object", "additionalProperties": STRING},
        "The value of each argument by its name: a tensor as a literal or as JSON; else it is a string.",
    ),
    "style": "form",
    "explode": True,
}
_FORM: Final[Json] = {
    "description": "The arguments; those of the query string go before them.",
    "required": False,
    "content": {
        "application/x-www-form-urlencoded": {
            "schema": {"type": "object", "additionalProperties": STRING},
            "examples": {"tensor": {"value": {"x": "tensor<float>(d0[1],d1[4]):[[1,2,3,4]]", PARAMETER: "short"}}},
        }
    },
}


_NOT_FOUND: Final = json_answer(
    "There is no such model, function or value; or the container has no `model-evaluation`.",
    {"anyOf": [ref("EvaluationError"), ref("Error")]},
)


def _info(name: str, summary: str, schema: str) -> dict[str, Json]:
    responses = {"200": json_answer(summary, ref(schema)), **errors(ref("EvaluationError")), "404": _NOT_FOUND}
    return {"get": operation(name, summary, _TAG, responses)}


def _evaluation(name: str, summary: str) -> dict[str, Json]:
    content = {JSON: ref("Tensor"), CBOR: ref("Tensor")}
    responses = {"200": answer("The result.", content), **errors(ref("EvaluationError"), 504), "404": _NOT_FOUND}
    get = operation(name, summary, _TAG, responses, parameters=(_FORMS, _ARGUMENTS))
    post = operation(f"{name}ByForm", summary, _TAG, responses, parameters=(_FORMS, _ARGUMENTS), body=_FORM)
    return {"get": get, "post": post}


def paths() -> dict[str, dict[str, Any]]:
    """Lists, what there is to know of models and functions, and evaluations."""
    root = "/model-evaluation/v1"
    return {
        root: _info("models", "The models, and where there is more to know of each.", "Models"),
        f"{root}/{{model}}": {"parameters": [_MODEL], **_info("model", "A model and its functions.", "Model")},
        f"{root}/{{model}}/eval": {
            "parameters": [_MODEL],
            **_evaluation("evaluateModel", "Evaluates the one function of a model."),
        },
        f"{root}/{{model}}/{{function}}": {
            "parameters": [_MODEL, _FUNCTION],
            **_info("function", "A function of a model and its arguments.", "Function"),
        },
        f"{root}/{{model}}/{{function}}/eval": {
            "parameters": [_MODEL, _FUNCTION],
            **_evaluation("evaluateFunction", "Evaluates a function of a model."),
        },
    }
