"""`preprocess:include` in any element, and `include dir` in search, processing, document processing and components.

What is included must be in the package, and no file may include itself, whatever lies between. All included elements
together are limited, so that files that include others many times do not grow without bound.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from paperwasp import limits
from paperwasp.application.archive import safe_path
from paperwasp.application.findings import Findings
from paperwasp.application.xml import Element, parse_fragment, parse_xml
from paperwasp.base.records import dataclass
from paperwasp.core.clock import check_time
from paperwasp.errors import LanguageError, UnreadablePackage

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


@dataclass(slots=True)
class _Includer:
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
    """Whether a normalized path is one that a package can have."""
    try:
        safe_path(path)
    except UnreadablePackage:
        return False
    return True
