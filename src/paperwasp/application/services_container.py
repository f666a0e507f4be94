"""A `container` of services.xml as a value."""

from __future__ import annotations

from typing import Final

from paperwasp.application.findings import Findings
from paperwasp.application.hosts import Hosts
from paperwasp.application.services_access import read_access, read_tls
from paperwasp.application.services_components import read_components
from paperwasp.application.services_config import (
    allows_expressions,
    highlight_tags,
    query_memory_bytes,
    snowball_english,
)
from paperwasp.application.services_filtering import read_filtering
from paperwasp.application.services_model import AccessLogSettings, Container, EvaluatedNetwork, HttpServer, Node
from paperwasp.application.values import boolean, integer, size_bytes
from paperwasp.application.xml import Element
from paperwasp.errors import Position

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


def _id(element: Element) -> str:
    attributes = element.attributes
    return attributes.get("id") or attributes.get("ident") or attributes.get("idref", "")


def _nodes(element: Element, hosts: Hosts) -> tuple[Node, ...]:
    nodes = element.first("nodes")
    aliases = [node.attributes.get("hostalias", "") for node in nodes.all("node")] if nodes is not None else []
    return tuple(Node(alias, hosts.host(alias)) for alias in aliases)


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
