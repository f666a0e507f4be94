"""A `container` of services.xml as a value: its components, filters, and who may talk to it.

Components of Vespa's own classes are right and are not executed yet; all others would need the Java that they are
written in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, cast, get_args

from paperwasp.application.access_model import Access, Client, ClientAuthentication, NamedFile, ServerTls
from paperwasp.application.findings import Findings
from paperwasp.application.grammar import VALUES, boolean, integer, size_bytes
from paperwasp.application.package_files import Hosts
from paperwasp.application.services_config import (
    ACCESS_CONFIG,
    allows_expressions,
    highlight_tags,
    note_unused,
    query_memory_bytes,
    snowball_english,
)
from paperwasp.application.services_model import (
    AccessLogSettings,
    Binding,
    ClusterNode,
    Container,
    EvaluatedNetwork,
    FilterChain,
    Filtering,
    HttpServer,
    read_binding,
)
from paperwasp.application.xml import Element
from paperwasp.components.cors import ANSWERS
from paperwasp.components.registry import is_executed
from paperwasp.errors import Position
from paperwasp.schema.files import Component
from paperwasp.text.parsing.tokens import did_you_mean

# Reads who may talk to a container: the `ssl` of its servers, its `clients`, and whether these are needed.
#
# The last is a configuration of our own, since Vespa leaves that to its cloud:
#
#     <config name="paperwasp.access"><required>true</required></config>


PERMISSIONS: Final = ("read", "write")
_REQUIRED: Final = "required"
_CERTIFICATE: Final = "certificate-file"
_PRIVATE_KEY: Final = "private-key-file"


def read_tls(server: Element) -> ServerTls | None:
    """The TLS of a `server`; None: it has none, or one that the grammar has found incomplete."""
    ssl = server.first("ssl")
    if ssl is None:
        return None
    certificate, private_key = _file(ssl, _CERTIFICATE), _file(ssl, _PRIVATE_KEY)
    if certificate is None or private_key is None:
        return None
    authentication = ssl.first("client-authentication")
    word = "" if authentication is None else authentication.text  # one that is none, the grammar reports
    return ServerTls(
        certificate,
        private_key,
        _file(ssl, "ca-certificates-file"),
        cast(ClientAuthentication, word if word in get_args(ClientAuthentication) else ""),
        _words(ssl, "cipher-suites"),
        _words(ssl, "protocols"),
        ssl.position,
    )


def _file(element: Element, tag: str) -> NamedFile | None:
    found = element.first(tag)
    return None if found is None else NamedFile(found.text, found.position)


def _words(element: Element, tag: str) -> tuple[str, ...]:
    found = element.first(tag)
    return tuple(word for part in found.text.split(",") if (word := part.strip())) if found is not None else ()


def read_access(container: Element, findings: Findings) -> Access:
    """Who may ask a container. Reports what is wrong with it, but not files that are not there."""
    clients = container.first("clients")
    declared = None if clients is None else tuple(_client(each, findings) for each in clients.all("client"))
    seen: set[str] = set()
    for client in declared or ():
        if client.id in seen:
            findings.error(f"client id '{client.id}' is used more than once", client.position)
        seen.add(client.id)
    position = container.position if clients is None else clients.position
    return Access(_required(container, findings), declared, position)


def _client(element: Element, findings: Findings) -> Client:
    found = Client(
        element.attributes.get("id", ""),
        _permissions(element, findings),
        tuple(NamedFile(each.attributes.get("file", ""), each.position) for each in element.all("certificate")),
        tuple(each.attributes.get("id", "") for each in element.all("token")),
        element.position,
    )
    if not found.certificates and not found.tokens:
        findings.error(f"client '{found.id}' has neither a 'certificate' nor a 'token'", element.position)
    return found


def _permissions(element: Element, findings: Findings) -> frozenset[str]:
    words = [word.strip() for word in element.attributes.get("permissions", "").split(",")]
    for word in words:
        if word not in PERMISSIONS:
            message = f"client '{element.attributes.get('id', '')}' has an unknown permission '{word[:100]}'"
            findings.error(f"{message}; there are 'read', 'write' and 'read,write'", element.position)
    return frozenset(words)


def _required(container: Element, findings: Findings) -> bool | None:
    found = None
    for config in container.all("config"):
        if config.attributes.get("name") != ACCESS_CONFIG:
            continue
        for child in config.children:
            if child.tag != _REQUIRED:
                message = f"{ACCESS_CONFIG} has no '{child.tag}'{did_you_mean(child.tag, (_REQUIRED,))}"
                findings.error(message, child.position)
            elif not VALUES["boolean"].accepts(child.text):
                message = f"value of '{_REQUIRED}' is invalid; must be {VALUES['boolean'].description}"
                findings.error(f"{message}, not '{child.text[:100]}'", child.position)
            else:
                found = boolean(child.text)
    return found


# Reads the `filtering` of a container's `http`: chains of request filters, and which requests go through them.
#
# Vespa: https://docs.vespa.ai/en/reference/applications/services/http.html#filtering


_REQUEST_CHAIN: Final = "request-chain"
_RESPONSE_CHAIN: Final = "response-chain"
_CHAINS: Final = (_REQUEST_CHAIN, _RESPONSE_CHAIN)


def read_filtering(http: Element | None, findings: Findings) -> Filtering | None:
    """The filtering of `http`; None: there is none. Reports what is wrong with it, and what has no effect yet."""
    filtering = http.first("filtering") if http is not None else None
    if filtering is None:
        return None
    strict = filtering.attributes.get("strict-mode")
    requests, answers = (_read_chains(filtering, kind, findings) for kind in (_REQUEST_CHAIN, _RESPONSE_CHAIN))
    _note_answers(filtering, answers, findings)
    _check_defaults(http, _REQUEST_CHAIN, requests, findings)
    _check_defaults(http, _RESPONSE_CHAIN, answers, findings)
    _check_access_control(filtering, findings)
    return Filtering(bool(requests or answers) if strict is None else boolean(strict), requests, answers)


def _read_chains(filtering: Element, kind: str, findings: Findings) -> tuple[FilterChain, ...]:
    elements = {_id(each): each for each in filtering.all(kind)}
    filters = _Chains(kind, elements, findings)
    for each in elements.values():
        _note_order(each, findings)
    return tuple(
        FilterChain(name, tuple(_bindings(each, findings)), filters.filters(name), each.position)
        for name, each in elements.items()
    )


def _note_answers(filtering: Element, chains: Iterable[FilterChain], findings: Findings) -> None:
    """Of the filters of answers, Vespa's for other origins is executed."""
    elements = [*filtering.all("filter")]
    elements += [each for tag in _CHAINS for chain in filtering.all(tag) for each in chain.all("filter")]
    executed = {_id(each) for each in elements if each.attributes.get("class", _id(each)).partition(":")[0] == ANSWERS}
    for chain in chains:
        for name in chain.filters:
            if name not in executed:
                message = f"filter '{name}' of response-chain '{chain.id}' is not executed yet"
                findings.warning(f"{message}: of filters of answers, {ANSWERS} is", chain.position)


def _check_access_control(filtering: Element, findings: Findings) -> None:
    """Outside Vespa Cloud the element demands a domain, and makes chains without filters."""
    control = filtering.first("access-control")
    if control is None:
        return
    if not control.attributes.get("domain"):
        findings.error("No Athenz domain provided for 'access-control'", control.position)
        return
    advice = "it is for Vespa Cloud. 'clients', or a filter of a request-chain, says who may ask a container"
    findings.warning(f"access-control lets everybody ask: {advice}", control.position)


def referred_filters(container: Element) -> set[str]:
    """The ids of the filters that stand beside the chains, which refer to them."""
    http = container.first("http")
    filtering = http.first("filtering") if http is not None else None
    return {_id(each) for each in filtering.all("filter")} if filtering is not None else set()


def _id(element: Element) -> str:
    attributes = element.attributes
    return attributes.get("id") or attributes.get("ident") or attributes.get("idref", "")


def _bindings(chain: Element, findings: Findings) -> Iterator[Binding]:
    for element in chain.all("binding"):
        try:
            yield read_binding(element.text)
        except ValueError as error:
            findings.error(str(error), element.position)


class _Chains:
    """The filters of each chain, found once, whoever inherits them."""

    def __init__(self, kind: str, elements: Mapping[str, Element], findings: Findings) -> None:
        self._kind = kind
        self._elements = elements
        self._findings = findings
        self._found: dict[str, tuple[str, ...] | None] = {}
        """None: they are being looked for."""

    def filters(self, name: str) -> tuple[str, ...]:
        """Their ids, each once: those that the chain inherits and does not exclude, then its own."""
        if name in self._found:
            found = self._found[name]
            if found is None:
                self._findings.error(f"{self._kind} '{name}' inherits itself", self._elements[name].position)
            return found or ()
        self._found[name] = None
        chain = self._elements[name]
        parents = chain.attributes.get("inherits", "").split()
        exclusions = chain.attributes.get("excludes", "").split()
        if (element := chain.first("inherits")) is not None:
            parents += [each.text or _id(each) for each in element.all("chain")]
            exclusions += [each.text or _id(each) for each in element.all("exclude")]
        ids = dict.fromkeys(each for parent in parents for each in self._of(parent, chain))
        for excluded in exclusions:
            ids.pop(excluded, None)
        found = tuple(dict.fromkeys((*ids, *(_id(each) for each in chain.all("filter")))))
        self._found[name] = found
        return found

    def _of(self, parent: str, chain: Element) -> tuple[str, ...]:
        if parent in self._elements:
            return self.filters(parent)
        hint = did_you_mean(parent, self._elements)
        message = f"{self._kind} '{_id(chain)}' inherits '{parent}', which is not there{hint}"
        self._findings.error(message, chain.position)
        return ()


def _note_order(chain: Element, findings: Findings) -> None:
    is_ordered = any(
        name in each.attributes or each.first(name) is not None
        for each in chain.all("filter")
        for name in ("before", "after")
    )
    if is_ordered or chain.first("phase") is not None:
        message = f"the order of {chain.tag} '{_id(chain)}' by phases, 'before' and 'after' is not executed yet"
        findings.warning(f"{message}: its filters run as they stand", chain.position)


def _check_defaults(http: Element | None, kind: str, chains: Sequence[FilterChain], findings: Findings) -> None:
    names = [chain.id for chain in chains]
    for server in http.all("server") if http is not None else ():
        name = server.attributes.get(f"default-{kind}")
        if name is not None and name not in names:
            findings.error(f"there is no {kind} '{name}'{did_you_mean(name, names)}", server.position)


_JAVA_TAGS: Final = frozenset(
    {
        "component", "handler", "server", "searcher", "documentprocessor", "processor", "renderer", "filter",
        "target-selector",
    }
)  # fmt: skip
_PENDING_TAGS: Final = frozenset({"federation", "provider"})
EXTENSION_TAGS: Final = _JAVA_TAGS | _PENDING_TAGS
"""Elements of which the class or type says what is made of them."""
_VESPA_CLASSES: Final = ("com.yahoo.", "ai.vespa.")
_VESPA_BUNDLES: Final = frozenset(
    {
        "", "container-core", "container-disc", "container-messagebus", "container-search-and-docproc", "docproc",
        "container-search", "jdisc-security-filters", "linguistics", "linguistics-components", "lucene-linguistics",
        "model-evaluation", "model-integration", "opennlp-linguistics", "vespaclient-container-plugin",
    }
)  # fmt: skip


def read_components(container: Element, findings: Findings) -> tuple[Component, ...]:
    """Reads everything in a container that is a component; reports those that are not executed or cannot work."""
    found: list[Component] = []
    referred = referred_filters(container)
    for element in _extensions(container):
        if _refers(element, referred):
            continue
        component = _component(element)
        if element.tag in _PENDING_TAGS:
            findings.warning(f"{_describe(component)} is not executed yet", element.position)
        elif not is_executed(component):
            _tell(component, findings)
            for config in element.all("config") if not component.type else ():
                note_unused(config, element, findings)
        found.append(component)
    return tuple(found)


def _extensions(container: Element) -> Iterator[Element]:
    waiting = [(child, container.tag) for child in reversed(container.children)]
    while waiting:
        element, parent = waiting.pop()
        is_reference = "idref" in element.attributes
        if element.tag in EXTENSION_TAGS and parent != "http" and not is_reference:
            yield element
        if element.tag != "config":
            waiting.extend((child, element.tag) for child in reversed(element.children))


def _refers(element: Element, filters: Collection[str]) -> bool:
    """Return whether a `filter` of a chain refers to one beside the chains, and is none of its own."""
    attributes = element.attributes
    is_bare = element.tag == "filter" and "class" not in attributes and "bundle" not in attributes
    return is_bare and not element.children and attributes.get("id") in filters


def _component(element: Element) -> Component:
    attributes = element.attributes
    return Component(
        kind=element.tag,
        id=attributes.get("id", attributes.get("ident", "")),
        type=attributes.get("type", ""),
        class_name=attributes.get("class", ""),
        bundle=attributes.get("bundle", ""),
        settings=dict(_settings(element, "")),
        position=element.position,
    )


def _settings(element: Element, path: str) -> Iterator[tuple[str, str]]:
    seen: Counter[str] = Counter()
    for child in element.children:
        seen[child.tag] += 1
        count = f"#{seen[child.tag]}" if seen[child.tag] > 1 else ""
        below = f"{path}{child.tag}{count}"
        if child.text or not (child.attributes or child.children):
            yield below, child.text
        for name, text in child.attributes.items():
            yield f"{below}@{name}", text
        yield from _settings(child, f"{below}/")


def _tell(component: Component, findings: Findings) -> None:
    if component.type:
        findings.warning(f"{_describe(component)} of type '{component.type}' is not executed yet", component.position)
        return
    class_name = (component.class_name or component.id).partition(":")[0]
    bundle = component.bundle.partition(":")[0]
    if class_name.startswith(_VESPA_CLASSES) and bundle in _VESPA_BUNDLES:
        findings.warning(f"{_describe(component)}, which is Vespa's, is not executed yet", component.position)
    else:
        message = f"{_describe(component)} cannot work here: there is no Java to run the class '{class_name}'"
        findings.error(message + (f" of bundle '{bundle}'" if bundle else ""), component.position)


def _describe(component: Component) -> str:
    return f"{component.kind} '{component.id}'"


_DEFAULT_BINDINGS: Final = {
    "search": ("/search/*", "/*"),
    "document-api": ("/", "/document-api/", "/document/v1/*", "/*"),
}
"""Paths that are served anyway."""


def read_container(element: Element, root: Element, hosts: Hosts, findings: Findings) -> Container:
    """The container below `root`. What the grammar found wrong is left out; what it cannot know is reported."""
    api = element.first("document-api")
    search = element.first("search")
    evaluation = element.first("model-evaluation")
    for interface in (search, api):
        _check_bindings(interface, findings)
    return Container(
        id=element.attributes.get("id", "container"),
        search=search is not None,
        document_api=api is not None,
        document_processing=element.first("document-processing") is not None,
        model_evaluation=evaluation is not None,
        evaluated_networks=_evaluated_networks(evaluation),
        servers=_servers(element, findings),
        access=read_access(element, findings),
        filtering=read_filtering(element.first("http"), findings),
        nodes=_nodes(element, hosts),
        components=read_components(element, findings),
        search_chains=_search_chains(search),
        searching_chains=_searching_chains(search),
        significance_models=_significance_models(search),
        snowball_english=snowball_english(root, element, findings),
        allows_expressions=allows_expressions(root, element, findings),
        query_memory_bytes=query_memory_bytes(root, element, findings),
        tags=highlight_tags(root, element, findings),
        ignore_undefined_fields=boolean(_text(api, "ignore-undefined-fields")),
        max_document_size_bytes=size_bytes(_text(api, "max-document-size")),
        access_log=_access_log(element),
        position=element.position,
    )


def _access_log(element: Element) -> AccessLogSettings | None:
    """None where there is no `accesslog`, or none but disabled ones."""
    for each in element.all("accesslog"):
        if each.attributes.get("type") == "disabled":
            continue
        if each.attributes.get("compressOnRotation") == "false":
            return AccessLogSettings("none")
        return AccessLogSettings("gzip" if each.attributes.get("compressionType") == "gzip" else "zstd")
    return None


def _text(element: Element | None, tag: str) -> str:
    found = element.first(tag) if element is not None else None
    return found.text if found is not None else ""


def _check_bindings(interface: Element | None, findings: Findings) -> None:
    for binding in interface.all("binding") if interface is not None else ():
        _, _, address = binding.text.partition("://")
        path = address[address.find("/") :] if "/" in address else ""
        assert interface is not None
        if path not in _DEFAULT_BINDINGS[interface.tag]:
            message = (
                f"the binding '{binding.text}' of '{interface.tag}' is not executed yet: it is served at its own path"
            )
            findings.warning(message, binding.position)


def _servers(element: Element, findings: Findings) -> tuple[HttpServer, ...]:
    http = element.first("http")
    found: dict[str, HttpServer] = {}
    for server in http.all("server") if http is not None else ():
        name = _id(server)
        if name in found:
            findings.error(f"server id '{name}' is used more than once", server.position)
        found[name] = HttpServer(
            name,
            integer(server.attributes.get("port", "")) or None,
            server.position,
            read_tls(server),
            server.attributes.get("default-request-chain", ""),
            server.attributes.get("default-response-chain", ""),
        )
    return tuple(found.values())


def _nodes(element: Element, hosts: Hosts) -> tuple[ClusterNode, ...]:
    nodes = element.first("nodes")
    aliases = [node.attributes.get("hostalias", "") for node in nodes.all("node")] if nodes is not None else []
    return tuple(ClusterNode(alias, hosts.host(alias)) for alias in aliases)


def _significance_models(search: Element | None) -> tuple[tuple[str, Position | None], ...]:
    found = search.first("significance") if search is not None else None
    models = found.all("model") if found is not None else ()
    return tuple((path, model.position) for model in models if (path := model.attributes.get("path")))


def _evaluated_networks(evaluation: Element | None) -> tuple[EvaluatedNetwork, ...]:
    onnx = evaluation.first("onnx") if evaluation is not None else None
    models = onnx.first("models") if onnx is not None else None
    return tuple(
        EvaluatedNetwork(
            model.attributes.get("name", ""),
            integer(_text(model, "intraop-threads")),
            integer(_text(model, "interop-threads")),
            _text(model, "execution-mode"),
            integer(_text(model, "gpu-device")),
            _text(model, "optimize-model") != "false",
            model.position,
        )
        for model in (models.all("model") if models is not None else ())
    )


def _search_chains(search: Element | None) -> tuple[str, ...]:
    chains = [child for child in search.children if child.tag in ("chain", "provider")] if search is not None else []
    return tuple(_id(chain) for chain in chains)


def _searching_chains(search: Element | None) -> tuple[str, ...]:
    chains = search.all("chain") if search is not None else ()
    return tuple(_id(chain) for chain in chains if chain.attributes.get("inherits"))
