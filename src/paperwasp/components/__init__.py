"""Components: all that indexing scripts and queries call, and request filters.

registry             all components of an application that scripts and queries call; what a deployment says of them
embedders/           Vespa's embedders, which make tensors of texts: models on this machine, and over HTTP
generation           Vespa's generators, which make values of fields by language models over HTTP
json_client          the client of those over HTTP, and its secrets
python_components    imports those written in Python, and calls them
cors                 Vespa's two filters for pages of other origins

This file has the protocols of those that are written in Python and come with an application package: what they are
given, and what they give.

A class in the package's folder `components/` has one of the methods below, or several. services.xml names it:

    <component id="lengths" class="lengths.Lengths" bundle="python">     components/lengths.py has the class Lengths
      <config name="lengths"><factor>2</factor></config>                 setup.settings == {"factor": "2"}
    </component>

An object of it is made at the deployment. It is called by several threads at a time. An exception refuses the
document, or the query, that it was called for. A class need not inherit from anything here: these are protocols, for
type checkers and readers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field
from numpy.typing import NDArray

Vector = Sequence[float] | NDArray[Any]
"""The cells of a dense tensor in its order, last dimension first to change: `call.size` of them."""


class Setup(Struct, frozen=True):
    """The setup of a component: the one argument of its class."""

    id: str
    settings: Mapping[str, str]
    """The elements in its `config`, or directly in it, by name; those in others by their path: `model/name`."""
    read: Callable[[str], bytes]
    """Path → the content of a file of the package. Errors: FileNotFoundError."""


class Call(Struct, frozen=True):
    """The circumstances of one call."""

    destination: str
    """The field that the value is for, `type.field`; or an input of a query, `query(name)`."""
    is_query: bool
    language: str
    """A language tag, `en`; empty: unknown."""
    arguments: tuple[str, ...]
    """The words behind the component's id in the indexing statement."""
    type: str
    """The type of the value, such as `tensor<float>(x[384])` or `array<string>`."""
    size: int
    """Cells of one vector of a tensor: the product of its indexed dimensions. 0 for other types."""


class RequestHead(Struct, frozen=True):
    """The head of a request, which a request filter sees."""

    method: str
    path: str
    """As it came, with its percent signs."""
    query: str
    """As it came; empty: there is none."""
    headers: Mapping[str, str]
    """By names in lower case; several fields of one name are one, joined by commas."""
    scheme: str
    """`http`, or `https` where it came over TLS."""
    address: str
    """Of the client."""
    certificate_name: str
    """The common name of the certificate that the client has shown, and its port trusts; empty: none."""
    certificate_sha256: str
    """Of the whole certificate, in hexadecimal digits; empty: none."""


class FilterAnswer(Struct, frozen=True):
    """The answer of a filter, which no interface sees."""

    status: int
    body: bytes | str = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class ChangedHead(Struct, frozen=True):
    """Header fields that a filter sets, or, where they are None, removes. Names in any case."""

    headers: Mapping[str, str | None]


class RequestFilter(Protocol):
    """Lets a request pass, changes its header fields, or answers it; for `filter` in `filtering`."""

    def filter(self, request: RequestHead) -> ChangedHead | FilterAnswer | None:
        """None: it passes as it is."""


class Embedder(Protocol):
    """Makes tensors of texts, for `embed` in indexing statements and queries."""

    def embed(self, texts: Sequence[str], call: Call) -> Sequence[Vector | Mapping[str, Vector | float]]:
        """One for each text: a vector for a dense tensor; for one with a mapped dimension, label → vector (or number,
        where it has no other dimension)."""


class Chunker(Protocol):
    """Cuts texts, for `chunk` in indexing statements."""

    def chunk(self, text: str, call: Call) -> Sequence[str]:
        """The chunks of the text."""


class Generator(Protocol):
    """Makes values of fields, for `generate` in indexing statements."""

    def generate(self, prompt: str, call: Call) -> object:
        """A value as in the JSON of a document (str, int, list, dict, …); None: there is none."""
