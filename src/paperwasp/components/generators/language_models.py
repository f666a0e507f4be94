"""Language models that complete a prompt: clients of the chat completions that OpenAI and others serve.

    ai.vespa.llm.clients.OpenAI        https://api.openai.com/v1/       gpt-4o-mini
    ai.vespa.llm.clients.OrcaRouter    https://api.orcarouter.ai/v1/    orcarouter/fusion-mini

`endpoint` may be that of any service with the same interface, with or without `chat/completions` at its end.

Vespa: https://docs.vespa.ai/en/rag/external-llms.html, OpenAICompatibleClient.java
Differs: LocalLLM is not executed; a call is over in two minutes, and tried three times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from paperwasp import limits
from paperwasp.components.generators.config import BOOLEAN, INTEGER, NUMBER, TEXT, Config, Definition, check_names
from paperwasp.components.remote.client import Endpoint, JsonClient
from paperwasp.components.remote.secrets import find_secret, variable_of
from paperwasp.errors import Finding, InvalidInput, Unavailable
from paperwasp.schema.files import Component

_PATH: Final = "chat/completions"
_RETRIES: Final = 2
_UNSET: Final = -1
_DEFINITION: Final[Definition] = {
    "apiKeySecretRef": (TEXT, ""),
    "apiKeySecretName": (TEXT, ""),
    "endpoint": (TEXT, ""),
    "model": (TEXT, ""),
    "temperature": (NUMBER, _UNSET),
    "maxTokens": (INTEGER, _UNSET),
    "reasoningEffort": (TEXT, ""),
    "jsonSchemaStrict": (BOOLEAN, False),
}


class LanguageModel(Protocol):
    """Completes prompts. Any thread; blocks."""

    def complete(self, prompt: str, schema: Mapping[str, Any] | None, timeout_seconds: float) -> str:
        """The text that a model answers in that time. `schema`: what it is to follow, as JSON.

        Errors: InvalidInput, Overload, Timeout, Unavailable.
        """


class _Service(NamedTuple):
    endpoint: str
    model: str


SERVICES: Final[Mapping[str, _Service]] = {
    "ai.vespa.llm.clients.OpenAI": _Service("https://api.openai.com/v1/", "gpt-4o-mini"),
    "ai.vespa.llm.clients.OrcaRouter": _Service("https://api.orcarouter.ai/v1/", "orcarouter/fusion-mini"),
}
"""Class of a component → where it is, and the model, by default."""


LOCAL: Final = "ai.vespa.llm.clients.LocalLLM"


class ChatCompletions:
    """A language model behind an interface like OpenAI's."""

    def __init__(self, component: Component) -> None:
        """Errors: ValueError for settings that are wrong."""
        config = Config(component, _DEFINITION)
        service = SERVICES[component.class_name]
        url = config["endpoint"] or service.endpoint
        if not url.endswith(_PATH):
            url = f"{url.removesuffix('/')}/{_PATH}"
        self.secret_name: str = config["apiKeySecretRef"] or config["apiKeySecretName"]
        name = f"component '{component.id}'"
        timeout_seconds = limits.GENERATION_TIMEOUT_SECONDS
        self._client = JsonClient(Endpoint(url, name, self.secret_name, timeout_seconds, _RETRIES))
        self._name = name
        self._is_strict: bool = config["jsonSchemaStrict"]
        self._settings: dict[str, Any] = {"model": config["model"] or service.model}
        if config["temperature"] >= 0:
            self._settings["temperature"] = config["temperature"]
        if config["maxTokens"] >= 0:
            self._settings["max_completion_tokens"] = config["maxTokens"]
        if config["reasoningEffort"]:
            self._settings["reasoning_effort"] = config["reasoningEffort"]

    def complete(self, prompt: str, schema: Mapping[str, Any] | None, timeout_seconds: float) -> str:
        """The text of the first choice."""
        body = {**self._settings, "messages": [{"role": "user", "content": prompt}]}
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": self._format(schema)}
        return self._text(self._client.post(body, timeout_seconds))

    def _format(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        strict = {"strict": True} if self._is_strict else {}
        return {"name": "structured-output", "schema": schema, **strict}

    def _text(self, answer: Any) -> str:
        """Errors: Unavailable for an answer of another form."""
        try:
            text = answer["choices"][0]["message"]["content"]
        except (LookupError, TypeError):
            text = None
        if not isinstance(text, str):
            raise Unavailable(f"{self._name}: {self._client.endpoint.url} answered without a text: {str(answer)[:500]}")
        return text


class LocalModel:
    """A language model that Vespa runs in the service itself. It is not executed here, and says so when it is asked."""

    def __init__(self, component: Component) -> None:
        self.reason: Final = (
            f"component '{component.id}': a model that runs in the service, {component.class_name}, is not executed; "
            "serve the model with an interface like OpenAI's, and name its address as 'endpoint' of a component of "
            f"class {next(iter(SERVICES))}"
        )

    def complete(self, prompt: str, schema: Mapping[str, Any] | None, timeout_seconds: float) -> str:
        """Errors: InvalidInput, always."""
        raise InvalidInput(self.reason)


def check_language_model(component: Component) -> Iterator[Finding]:
    """What a deployment tells of a client. Errors: ValueError for settings that are wrong."""
    yield from check_names(component, _DEFINITION)
    secret_name = ChatCompletions(component).secret_name
    if secret_name and find_secret(secret_name) is None:
        message = f"component '{component.id}': there is no secret '{secret_name}' ({variable_of(secret_name)}) yet"
        yield Finding(message, component.position, "WARNING")
