"""services.xml before it is read: files are included, variants chosen, properties put in, in this order, as Vespa does.

Vespa: https://docs.vespa.ai/en/reference/applications/application-packages.html#preprocess-directives and
https://docs.vespa.ai/en/operations/deployment-variants.html
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.application.findings import Findings
from paperwasp.application.package import safe_path
from paperwasp.application.xml import Element, parse_fragment, parse_xml
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.core.clock import check_time
from paperwasp.errors import LanguageError, Position, UnreadablePackage
from paperwasp.text.parsing.tokens import did_you_mean

# `preprocess:include` in any element, and `include dir` in search, processing, document processing and components.
#
# What is included must be in the package, and no file may include itself, whatever lies between. All included elements
# together are limited, so that files that include others many times do not grow without bound.


_INCLUDE: Final = "preprocess:include"
_FOLDER_INCLUDE: Final = "include"
_FOLDER_INCLUDERS: Final = frozenset({"search", "document-processing", "processing", "components", "container"})
_CHAIN_FOLDERS: Final = {
    "search": "search/chains",
    "document-processing": "docproc/chains",
    "processing": "processing/chains",
}
"""Element of a container → the folder whose files are always included in it."""


class _TooMuch(Exception):
    """More elements, or deeper ones, than may be."""


def with_includes(root: Element, files: Mapping[str, bytes], findings: Findings) -> Element:
    """The tree with everything included, where the directives stood last in their parents."""
    includer = _Includer(files, findings)
    try:
        return includer.expand(root, ())
    except _TooMuch as error:
        findings.error(str(error), root.position)
        return replace(root, children=[])


class _Includer(Struct):
    files: Mapping[str, bytes]
    findings: Findings
    _elements: int = 0
    _depth: int = 0

    def expand(self, element: Element, open_files: tuple[str, ...], parent: str = "") -> Element:
        self._depth += 1
        if self._depth > limits.XML_DEPTH:
            raise _TooMuch(f"Elements are nested deeper than {limits.XML_DEPTH} with all that is included")
        children = self._children(element.children, element.tag, open_files)
        if parent == "container" and element.tag in _CHAIN_FOLDERS:
            children.extend(self._files_below(_CHAIN_FOLDERS[element.tag], element.tag, open_files))
        self._depth -= 1
        return replace(element, children=children)

    def _children(self, elements: list[Element], parent: str, open_files: tuple[str, ...]) -> list[Element]:
        """The elements, which stand in `parent`, with what their directives include behind them."""
        found: list[Element] = []
        last: list[Element] = []
        for element in elements:
            check_time()
            self._elements += 1
            if self._elements > limits.XML_ELEMENTS:
                raise _TooMuch(f"There are more than {limits.XML_ELEMENTS} elements with all that is included")
            if element.tag == _INCLUDE:
                last.extend(self._file(element, parent, open_files))
            elif element.tag == _FOLDER_INCLUDE and parent in _FOLDER_INCLUDERS:
                last.extend(self._folder(element, parent, open_files))
            else:
                found.append(self.expand(element, open_files, parent))
        return found + last

    def _file(self, directive: Element, tag: str, open_files: tuple[str, ...]) -> list[Element]:
        """The elements in the file that the directive names, relative to the folder of the file that it is in."""
        name = directive.attributes.get("file")
        if name is None:
            self.findings.error(f"'{_INCLUDE}' missing required attribute 'file'", directive.position)
            return []
        folder = posixpath.dirname(open_files[-1]) if open_files else ""
        path = posixpath.normpath(posixpath.join(folder, name))
        if posixpath.isabs(name) or not _is_inside(path):
            self.findings.error(f"'{name}' is not a file within the application package", directive.position)
        elif path not in self.files:
            if directive.attributes.get("required", "true") == "true":
                self.findings.error(f"The included file '{name}' is not in the application package", directive.position)
        elif self._may_open(path, directive, open_files):
            return self._elements_in(path, tag, open_files, is_fragment=True)
        return []

    def _may_open(self, path: str, directive: Element, open_files: tuple[str, ...]) -> bool:
        if path in open_files or path == directive.position.source:
            self.findings.error(f"'{path}' includes itself", directive.position)
        elif len(open_files) >= limits.XML_INCLUDE_DEPTH:
            message = f"More than {limits.XML_INCLUDE_DEPTH} files include each other"
            self.findings.error(message, directive.position)
        else:
            return True
        return False

    def _folder(self, directive: Element, tag: str, open_files: tuple[str, ...]) -> list[Element]:
        folder = directive.attributes.get("dir", "").removesuffix("/")
        path = posixpath.normpath(folder) if folder else ""
        if not folder or posixpath.isabs(folder) or not _is_inside(path):
            self.findings.error(f"'{folder}' is not a folder within the application package", directive.position)
            return []
        if not any(name.startswith(path + "/") for name in self.files):
            message = f"The included folder '{folder}' is not in the application package"
            self.findings.error(message, directive.position)
            return []
        return self._files_below(path, tag, open_files, directive)

    def _files_below(
        self, folder: str, tag: str, open_files: tuple[str, ...], directive: Element | None = None
    ) -> list[Element]:
        """The elements in the XML files directly in a folder, each with a root of the tag that they are for."""
        found: list[Element] = []
        for path in sorted(self.files):
            is_in_folder = posixpath.dirname(path) == folder and path.endswith(".xml")
            if is_in_folder and (directive is None or self._may_open(path, directive, open_files)):
                found.extend(self._elements_in(path, tag, open_files, is_fragment=False))
        return found

    def _elements_in(self, path: str, tag: str, open_files: tuple[str, ...], *, is_fragment: bool) -> list[Element]:
        try:
            content = self.files[path]
            root = parse_fragment(content, path, tag) if is_fragment else parse_xml(content, path)
        except LanguageError as error:
            self.findings.problem(error)
            return []
        if root.tag not in (tag, "chain"):
            self.findings.error(f"element '{root.tag}' not allowed here; expected element '{tag}'", root.position)
            return []
        found = root.children if root.tag == tag else [root]
        return self._children(found, tag, (*open_files, path))


def _is_inside(path: str) -> bool:
    """Return whether a normalized path is one that a package can have."""
    try:
        safe_path(path)
    except UnreadablePackage:
        return False
    return True


# `deploy:environment` and its like: of the elements that are variants of each other, the ones for this deployment.
#
# Elements of one tag and id that stand side by side are variants of each other where any of them has a directive. Those
# whose directives do not fit go; of the others, those with the most fitting directives stay. What an element says holds
# for all that is in it.


_PREFIX: Final = "deploy:"
_ENVIRONMENTS: Final = ("dev", "test", "staging", "perf", "prod")
_ONE_REGION: Final = ("dev", "test", "staging", "perf")
"""Environments where the region of a directive does not matter."""

_Directives = Mapping[str, frozenset[str]]
_NONE: Final[_Directives] = MappingProxyType({})


class DeployProperties(Struct, frozen=True):
    """The properties of a deployment, by which variants of services.xml and of query profiles are chosen."""

    instance: str = "default"
    environment: str = "prod"
    region: str = "default"
    cloud: str = "default"
    tags: frozenset[str] = frozenset()

    def values(self, name: str) -> frozenset[str]:
        """The values of the deployment for the directive `deploy:name`."""
        return self.tags if name == "tags" else frozenset({str(getattr(self, name))})


_NAMES: Final = ("instance", "environment", "region", "cloud", "tags")


def variant(root: Element, properties: DeployProperties, findings: Findings) -> Element:
    """The tree for one deployment, without directives."""
    chooser = _Chooser(properties, findings)
    chooser.check_directives(root)
    return chooser.choose(root, _NONE)


class _Chooser(Struct, frozen=True):
    properties: DeployProperties
    findings: Findings

    def choose(self, element: Element, around: _Directives) -> Element:
        context = {**_read_directives(element), **around}
        groups: dict[tuple[str, ...], list[Element]] = {}
        for child in element.children:
            identity = (child.tag, child.attributes.get("id", ""), child.attributes.get("idref", ""))
            groups.setdefault(identity, []).append(child)
        kept = {id(child) for group in groups.values() for child in self._of_group(group, context)}
        children = [self.choose(child, context) for child in element.children if id(child) in kept]
        attributes = {name: text for name, text in element.attributes.items() if not name.startswith(_PREFIX)}
        return replace(element, attributes=attributes, children=children)

    def _of_group(self, group: list[Element], context: _Directives) -> list[Element]:
        for child in group:
            self.check_directives(child)
        directives = [_read_directives(child) for child in group]
        if not any(directives):
            return group
        for child, own in zip(group, directives, strict=True):
            self._check_subset(child, own, context)
        fitting = [(child, own) for child, own in zip(group, directives, strict=True) if self._fits(own)]
        ranked = [(self._rank({**context, **own}), child) for child, own in fitting]
        best = max((rank for rank, _ in ranked), default=0)
        return [child for rank, child in ranked if rank == best or best == 0]

    def _fits(self, own: _Directives) -> bool:
        for name, values in own.items():
            if name == "region" and self.properties.environment in _ONE_REGION:
                if "environment" not in own:
                    return False
            elif values.isdisjoint(self.properties.values(name)):
                return False
        return True

    def _rank(self, directives: _Directives) -> int:
        return sum(not values.isdisjoint(self.properties.values(name)) for name, values in directives.items())

    def _check_subset(self, child: Element, own: _Directives, context: _Directives) -> None:
        for name, values in own.items():
            if name in context and not values <= context[name]:
                inner, outer = (" ".join(sorted(texts)) for texts in (values, context[name]))
                message = f'deploy:{name}="{inner}" of \'{child.tag}\' is not within the "{outer}" around it'
                self.findings.error(message, child.position)

    def check_directives(self, element: Element) -> None:
        """Tells what is no directive, and what no environment."""
        for name in element.attributes:
            known = name.removeprefix(_PREFIX)
            if name.startswith(_PREFIX) and known not in _NAMES:
                message = f"attribute '{name}' not allowed here, in '{element.tag}'{did_you_mean(known, _NAMES)}"
                self.findings.error(message, element.position)
        for environment in sorted(_read_directives(element).get("environment", frozenset()) - set(_ENVIRONMENTS)):
            hint = did_you_mean(environment, _ENVIRONMENTS)
            self.findings.error(f"'{environment}' is no environment{hint}", element.position)


def _read_directives(element: Element) -> _Directives:
    found = {name: frozenset(element.attributes.get(_PREFIX + name, "").split()) for name in _NAMES}
    return {name: values for name, values in found.items() if values}


# `preprocess:properties`: names for texts, put in where `${name}` stands in an attribute or in an element's text.
#
# Properties may be defined anywhere, count everywhere, and the last of one name wins. What they are put into is not
# looked at again, so properties do not refer to each other.


_PROPERTIES: Final = "preprocess:properties"
_REFERENCE: Final = compile_later(r"\$\{([^${}]*)\}")


def with_properties(root: Element, findings: Findings) -> Element:
    """The tree with properties put in, and without their definitions."""
    values: dict[str, str] = {}
    for element in _definitions(root):
        if element.tag in values:
            findings.warning(
                f"The property '{element.tag}' is defined more than once; the last counts", element.position
            )
        values[element.tag] = element.text
    return _Filler(values, findings).fill(root)


def _definitions(root: Element) -> Iterator[Element]:
    for child in root.children:
        yield from child.children if child.tag == _PROPERTIES else _definitions(child)


class _Filler(Struct):
    values: Mapping[str, str]
    findings: Findings
    _room: int = field(default=limits.XML_BYTES)

    def fill(self, element: Element) -> Element:
        position = element.position
        return replace(
            element,
            attributes={name: self._text(text, position) for name, text in element.attributes.items()},
            children=[self.fill(child) for child in element.children if child.tag != _PROPERTIES],
            text=self._text(element.text, position) if not element.children else element.text,
        )

    def _text(self, text: str, position: Position) -> str:
        return _REFERENCE.sub(lambda found: self._value(found, position), text) if "${" in text else text

    def _value(self, reference: re.Match[str], position: Position) -> str:
        name = reference[1]
        if name not in self.values:
            hint = did_you_mean(name, self.values)
            self.findings.error(f"The property '{name}' is not defined{hint}", position)
            return reference[0]
        self._room -= len(self.values[name])
        if self._room < 0:
            self.findings.error(f"Properties make more than {limits.XML_BYTES} characters", position)
            return ""
        return self.values[name]


def preprocess(root: Element, files: Mapping[str, bytes], properties: DeployProperties, findings: Findings) -> Element:
    """The tree that a deployment with these properties sees. `files` are those of the package."""
    _check_prefixes(root, findings)
    included = with_includes(root, files, findings)
    return with_properties(variant(included, properties, findings), findings)


def _check_prefixes(root: Element, findings: Findings) -> None:
    """Checks that prefixes are declared around their use, as XML asks; directives are known by their usual prefixes."""
    declared = {name for name in root.attributes if name.startswith("xmlns:")}
    reported: set[str] = set()
    waiting = [root]
    while waiting:
        element = waiting.pop()
        for name in (element.tag, *element.attributes):
            prefix = name.partition(":")[0]
            known = {"deploy": "vespa", "preprocess": "properties"}.get(prefix)
            if ":" in name and known and f"xmlns:{prefix}" not in declared and prefix not in reported:
                reported.add(prefix)
                hint = f"xmlns:{prefix}=\"{known}\" is missing in '{root.tag}'"
                findings.error(f"The prefix '{prefix}' of '{name}' is not bound: {hint}", element.position)
        waiting.extend(child for child in reversed(element.children))
