"""Reads the components of containers: models of built-in types, and Java classes, which cannot run here.

Classes of Vespa's own are right and are not executed yet; all others would need the Java that they are written in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from paperwasp.application.findings import Findings
from paperwasp.application.services_config import note_unused
from paperwasp.application.services_filtering import referred_filters
from paperwasp.application.xml import Element
from paperwasp.components.registry import is_executed
from paperwasp.schema.components import Component

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
    """Whether a `filter` of a chain is one that stands beside the chains; there it has a class, or the chain's own."""
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
