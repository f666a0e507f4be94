"""What may stand in services.xml, as a table: every element that Vespa knows, and what paperwasp does with it.

* `USED`: it has its effect, and what is in it is looked at by the same table.
* `NOTED`: it is right, but changes nothing here (threads, memory, hosts: everything runs in one process). What is
  in it is not looked at; the deployment log says so.
* `LATER`: Vespa acts on it and paperwasp does not yet. A package that has it is refused.

What is not in the table is unknown to Vespa as well, and refused.

Vespa: https://docs.vespa.ai/en/reference/applications/services/services.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final


class Use(Enum):
    """What is made of an element or attribute: executed, read without effect and noted, or refused for now."""

    USED = "used"
    NOTED = "noted"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Rule:
    """What one element is, and what may be in it."""

    use: Use = Use.USED
    required: frozenset[str] = frozenset()
    attributes: Mapping[str, Use] = field(default_factory=dict)
    children: Mapping[str, Rule] = field(default_factory=dict)
    once: frozenset[str] = frozenset()
    """Children that may stand only once."""
    why: str = ""
    """The note of a noted element."""


def _all(use: Use, *names: str) -> dict[str, Use]:
    return dict.fromkeys(names, use)


def _rules(use: Use, *names: str) -> dict[str, Rule]:
    return {name: Rule(use) for name in names}


NOTED: Final = Rule(Use.NOTED)
LATER: Final = Rule(Use.LATER)
_TEXT: Final = Rule()
_ONE_PROCESS: Final = "everything runs in this one process"
_NODES_ATTRIBUTES: Final = _all(
    Use.NOTED, "count", "flavor", "required", "exclusive", "docker-image", "groups", "group-size", "of", "type",
    "jvm-options", "jvm-gc-options", "preload", "allocated-memory", "cpu-socket-affinity", "mmap-core-limit",
    "core-on-oom", "no-vespamalloc", "vespamalloc", "vespamalloc-debug", "vespamalloc-debug-stacktrace",
)  # fmt: skip
_NODE_ATTRIBUTES: Final = {
    **_all(Use.USED, "hostalias", "distribution-key"),
    **_all(Use.NOTED, "baseport", "jvm-options", "jvm-gc-options", "preload", "cpu-socket", "capacity"),
    **_NODES_ATTRIBUTES,
}

SEARCH: Final = Rule(
    children={
        **_rules(Use.LATER, "include", "binding", "searcher", "federation", "provider", "chain", "renderer", "config"),
        **_rules(Use.LATER, "significance"),
        "threadpool": NOTED,
    }
)
DOCUMENT_API: Final = Rule(
    children={
        **_rules(Use.LATER, "binding", "config", "ignore-undefined-fields", "max-document-size"),
        **_rules(Use.NOTED, "abortondocumenterror", "retryenabled", "route", "maxpendingdocs", "maxpendingbytes"),
        **_rules(Use.NOTED, "retrydelay", "timeout", "tracelevel", "mbusport", "rest-api", "http-client-api"),
    }
)
DOCUMENT_PROCESSING: Final = Rule(
    attributes=_all(
        Use.NOTED, "compressdocuments", "numnodesperclient", "preferlocalnode", "maxmessagesinqueue",
        "maxqueuebytesize", "maxqueuewait", "maxconcurrentfactor", "documentexpansionfactor", "containercorememory",
    ),
    children={**_rules(Use.LATER, "include", "documentprocessor", "chain", "config"), "threadpool": NOTED},
)  # fmt: skip
SERVER: Final = Rule(
    attributes={
        **_all(Use.USED, "id", "idref", "ident", "port", "required"),
        **_all(Use.LATER, "default-request-chain", "default-response-chain"),
    },
    children=_rules(Use.LATER, "ssl", "ssl-provider", "config"),
)
CONTAINER_NODES: Final = Rule(
    attributes=_NODES_ATTRIBUTES,
    children={
        "node": Rule(attributes=_NODE_ATTRIBUTES, children={"config": LATER}),
        **_rules(Use.NOTED, "jvm", "resources", "environment-variables"),
    },
)
CONTAINER: Final = Rule(
    required=frozenset({"version"}),
    attributes={**_all(Use.USED, "version", "id")},
    children={
        "search": SEARCH,
        "document-api": DOCUMENT_API,
        "document-processing": DOCUMENT_PROCESSING,
        "http": Rule(children={"server": SERVER, "filtering": LATER}),
        "nodes": CONTAINER_NODES,
        **_rules(Use.LATER, "model-evaluation", "component", "components", "handler", "server", "processing", "config"),
        **_rules(Use.LATER, "include", "document", "zookeeper", "secret-store", "secrets", "client-authorize"),
        **_rules(Use.LATER, "clients"),
        **_rules(Use.NOTED, "accesslog", "load-balancer", "threadpool", "inference", "jvm"),
    },
    once=frozenset({"search", "document-api", "document-processing", "http", "nodes", "model-evaluation"}),
)

DOCUMENT: Final = Rule(
    required=frozenset({"type", "mode"}),
    attributes={**_all(Use.USED, "type", "mode"), "selection": Use.LATER, "global": Use.NOTED},
)
DOCUMENTS: Final = Rule(
    attributes=_all(Use.LATER, "selection", "garbage-collection", "garbage-collection-interval"),
    children={
        "document": DOCUMENT,
        "document-processing": Rule(attributes={"cluster": Use.NOTED, "chain": Use.LATER}),
    },
    once=frozenset({"document-processing"}),
)
CONTENT_NODE: Final = Rule(
    required=frozenset({"distribution-key"}), attributes=_NODE_ATTRIBUTES, children={"config": LATER}
)
CONTENT_NODES: Final = Rule(attributes=_NODES_ATTRIBUTES, children={"node": CONTENT_NODE, "resources": NOTED})
CONTENT: Final = Rule(
    required=frozenset({"version"}),
    attributes={**_all(Use.USED, "version", "id"), "distributor-base-port": Use.NOTED},
    children={
        "documents": DOCUMENTS,
        "redundancy": Rule(attributes={"reply-after": Use.NOTED}),
        "min-redundancy": _TEXT,
        "nodes": CONTENT_NODES,
        "group": Rule(Use.NOTED, why=_ONE_PROCESS),
        **_rules(Use.NOTED, "engine", "search", "tuning", "dispatch", "coverage-policy", "controllers"),
        "config": LATER,
    },
    once=frozenset({"documents", "redundancy", "min-redundancy", "nodes", "group", "engine", "search", "tuning"}),
)

SERVICES: Final = Rule(
    attributes={
        **_all(Use.USED, "version", "minimum-required-vespa-version", "major-version"),
        "application-type": Use.LATER,
    },
    children={
        "container": CONTAINER,
        "content": CONTENT,
        "admin": Rule(Use.NOTED, why=_ONE_PROCESS),
        **_rules(Use.LATER, "routing", "config", "clients", "service", "cluster", "genericcluster"),
    },
    once=frozenset({"admin", "routing"}),
)
