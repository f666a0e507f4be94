"""Reads the `config` elements of services.xml: of dynamic summaries, of linguistics, and of ranking in queries.

`vespa.config.search.summary.juniperrc` may stand in `services`, `content` and the `document` of a cluster; what is
further in counts more. Its `override` is an array of `item`, each for the summary field `fieldname`; what an item does
not say has its default. `ai.vespa.opennlp.open-nlp`, `paperwasp.search.ranking-expressions` and
`paperwasp.search.query-memory`, which Vespa does not know and leaves alone, may stand in `services` and `container`,
and `container.qr-searchers` there and in `search`.
Every other configuration is reported as one without effect.

Vespa: https://docs.vespa.ai/en/querying/document-summaries.html#dynamic-snippet-configuration and
https://docs.vespa.ai/en/linguistics/linguistics-opennlp.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from paperwasp.application.elements import RULES
from paperwasp.application.findings import Findings
from paperwasp.application.grammar import QUERY_MEMORY, VALUES, boolean, is_query_memory, size_bytes
from paperwasp.application.xml import Element
from paperwasp.base.records import replace
from paperwasp.errors import Finding
from paperwasp.schema.teaser_settings import DEFAULT_SETTINGS, HI_TAGS, Tags, Teasers, TeaserSettings
from paperwasp.text.parsing.tokens import did_you_mean

_JUNIPER: Final = "vespa.config.search.summary.juniperrc"
_OPEN_NLP: Final = "ai.vespa.opennlp.open-nlp"
EXPRESSIONS: Final = "paperwasp.search.ranking-expressions"
_ENABLED: Final = "enabled"
ACCESS_CONFIG: Final = "paperwasp.access"
MEMORY: Final = "paperwasp.search.query-memory"
_SIZE: Final = "size"
_SEARCHERS: Final = "container.qr-searchers"
_OF_CONTAINERS: Final = (_OPEN_NLP, EXPRESSIONS, MEMORY, _SEARCHERS)
"""The settings that hold for containers, wherever they stand."""
_SNOWBALL_ENGLISH: Final = "snowballStemmingForEnglish"
_OPEN_NLP_SETTINGS: Final = {
    _SNOWBALL_ENGLISH: VALUES["boolean"],
    "cjk": VALUES["boolean"],
    "createCjkGrams": VALUES["boolean"],
    "detectConfidenceThreshold": VALUES["from-0"],
}
_OVERRIDE: Final = "override"
_ITEM: Final = "item"
_FIELD_NAME: Final = "fieldname"
_KINDS: Final = {bool: VALUES["boolean"], int: VALUES["count"], float: VALUES["from-0"]}
_SETTINGS: Final[Mapping[str, type]] = {
    name: type(getattr(DEFAULT_SETTINGS, name)) for name in TeaserSettings.__struct_fields__
}


_Values = Mapping[str, Any]


class JuniperConfig(Struct, frozen=True):
    """The settings of dynamic summaries, from the root down to some element."""

    settings: _Values = field(default_factory=dict)
    overrides: Mapping[str, _Values] = field(default_factory=dict)
    """Name of a summary field → its settings."""

    def below(self, element: Element, findings: Findings) -> JuniperConfig:
        """The settings with those of an element below. Reports what is wrong with them, and what has no effect."""
        settings, overrides = dict(self.settings), dict(self.overrides)
        for config in element.all("config"):
            if config.attributes.get("name") == _JUNIPER:
                settings |= _settings(config, findings, _OVERRIDE)
                overrides |= _overrides(config, findings)
            elif element.tag != "services" or _name_of(config) not in _OF_CONTAINERS:
                note_unused(config, element, findings)
        return JuniperConfig(settings, overrides)

    def teasers(self) -> Teasers:
        """The settings of every summary field."""
        by_name = {name: TeaserSettings(**settings) for name, settings in self.overrides.items()}
        return Teasers(TeaserSettings(**self.settings), MappingProxyType(by_name))


def snowball_english(root: Element, container: Element, findings: Findings) -> bool:
    """Return whether a container stems English by Snowball's algorithm. Reports what is wrong."""
    found = False
    for element in (root, container):
        for config in element.all("config"):
            if _name_of(config) == _OPEN_NLP:
                found = _open_nlp(config, findings, found)
            elif element is container and _name_of(config) not in (*_OF_CONTAINERS, ACCESS_CONFIG):
                note_unused(config, element, findings)
    return found


def allows_expressions(root: Element, container: Element, findings: Findings) -> bool:
    """Return whether queries to a container may bring ranking expressions. What is wrong is reported."""
    found = True
    for child in _said(root, container, EXPRESSIONS, _ENABLED, findings):
        if not VALUES["boolean"].accepts(child.text):
            findings.error(_invalid(child, VALUES["boolean"].description), child.position)
        else:
            found = boolean(child.text)
    return found


def query_memory_bytes(root: Element, container: Element, findings: Findings) -> int:
    """Read the bytes that ranking for a query to a container may take; 0: not said. Reports what is wrong."""
    found = 0
    for child in _said(root, container, MEMORY, _SIZE, findings):
        said = size_bytes(child.text)
        if said is None or not is_query_memory(said):
            findings.error(_invalid(child, QUERY_MEMORY), child.position)
        else:
            found = said
    return found


def _said(root: Element, container: Element, name: str, member: str, findings: Findings) -> Iterator[Element]:
    """The only member that a configuration has, from the root down. Others are reported."""
    for config in (config for element in (root, container) for config in element.all("config")):
        if _name_of(config) != name:
            continue
        for child in config.children:
            if child.tag == member:
                yield child
            else:
                findings.error(f"{name} has no '{child.tag}'{did_you_mean(child.tag, (member,))}", child.position)


def highlight_tags(root: Element, container: Element, findings: Findings) -> Tags:
    """How a container marks words of queries in bolded texts and teasers. What has no effect is reported.

    Vespa: qr-searchers.def in configdefinitions, JuniperSearcher.java in container-search
    """
    found = HI_TAGS
    search = container.first("search")
    for element in (root, container, *([search] if search else [])):
        for config in element.all("config"):
            if _name_of(config) == _SEARCHERS:
                found = _tags(config, element, findings, found)
            elif element is search:
                note_unused(config, element, findings)
    return found


def _tags(config: Element, element: Element, findings: Findings, otherwise: Tags) -> Tags:
    said: dict[str, str] = {}
    for child in config.children:
        if child.tag != "tag":
            note_unused(config, element, findings)
            continue
        bold = child.first("bold")
        said |= {each.tag: each.text for each in (bold.children if bold else ()) if each.tag in ("open", "close")}
        said |= {each.tag: each.text for each in child.all("separator")}
    return replace(otherwise, **said)


def _open_nlp(config: Element, findings: Findings, otherwise: bool) -> bool:
    found = otherwise
    for child in config.children:
        kind = _OPEN_NLP_SETTINGS.get(child.tag)
        if kind is None:
            message = f"{_OPEN_NLP} has no '{child.tag}'{did_you_mean(child.tag, _OPEN_NLP_SETTINGS)}"
            findings.error(message, child.position)
        elif not kind.accepts(child.text):
            findings.error(_invalid(child, kind.description), child.position)
        elif child.tag == _SNOWBALL_ENGLISH:
            found = boolean(child.text)
        elif child.tag == "cjk" and boolean(child.text):
            findings.warning(f"'cjk' of {_OPEN_NLP} is not executed yet: Chinese is not cut in words", child.position)
        elif child.tag == "detectConfidenceThreshold":
            what = f"'{child.tag}' of {_OPEN_NLP} has no effect: languages are detected by letters and common words"
            findings.add(Finding(what, child.position, "INFO"))
    return found


def _name_of(config: Element) -> str:
    """With its namespace, which may stand apart."""
    name, namespace = config.attributes.get("name", ""), config.attributes.get("namespace", "")
    return f"{namespace}.{name}" if namespace else name


def note_unused(config: Element, element: Element, findings: Findings) -> None:
    """Notes that a `config` in an element is not read."""
    what = f"element 'config' in '{element.tag}' has no effect: {RULES['config'].why}"
    findings.add(Finding(what, config.position, "INFO"))


def _invalid(element: Element, wanted: str) -> str:
    return f"value of '{element.tag}' is invalid; must be {wanted}, not '{element.text[:100]}'"


def _overrides(config: Element, findings: Findings) -> dict[str, _Values]:
    found: dict[str, _Values] = {}
    for item in (child for override in config.all(_OVERRIDE) for child in override.children):
        name = item.first(_FIELD_NAME)
        if item.tag != _ITEM:
            message = f"'{_OVERRIDE}' of {_JUNIPER} is an array: '{_ITEM}' elements stand in it, not '{item.tag}'"
            findings.error(message, item.position)
        elif name is None or not name.text:
            message = f"an '{_ITEM}' of '{_OVERRIDE}' must name a summary field in '{_FIELD_NAME}'"
            findings.error(message, item.position)
        else:
            found[name.text] = _settings(item, findings, _FIELD_NAME)
    return found


def _settings(element: Element, findings: Findings, beside: str) -> dict[str, Any]:
    """The settings in an element, where `beside` may stand too."""
    found: dict[str, Any] = {}
    for child in element.children:
        if child.tag == beside:
            continue
        kind = _SETTINGS.get(child.tag)
        if kind is None:
            message = f"{_JUNIPER} has no '{child.tag}'{did_you_mean(child.tag, (*_SETTINGS, beside))}"
            findings.error(message, child.position)
        elif not _KINDS[kind].accepts(child.text):
            findings.error(_invalid(child, _KINDS[kind].description), child.position)
        else:
            found[child.tag] = boolean(child.text) if kind is bool else kind(child.text)
    return found
