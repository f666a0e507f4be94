"""The files of a package beside services.xml and the schemas: taken, told about, or refused as not supported yet."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from paperwasp.application.package import ApplicationPackage
from paperwasp.application.services import Note
from paperwasp.application.xml import Element, parse_xml
from paperwasp.errors import LanguageError

_LATER: Final = {
    "components/*.jar": "Java components are",
    "rules/*": "query rules are",
    "search/chains/*": "search chains are",
    "docproc/chains/*": "document processing chains are",
    "processing/*": "processing chains are",
    "page-templates/*": "page templates are",
    "routing/*": "routing is",
}
"""Path pattern → who is not supported yet."""
_QUERY_PROFILES: Final = "search/query-profiles"
_WITHOUT_EFFECT: Final = {
    "hosts.xml": "everything runs in this one process",
    "deployment.xml": "there is one place to deploy to",
    "validation-overrides.xml": "no change needs an override yet",
}
_PROFILE_ROOTS: Final = ("query-profile", "query-profile-type")


def check_extras(package: ApplicationPackage, notes: list[Note], problems: list[str]) -> None:
    """Adds what is to be told, and what is wrong, about the other files."""
    for path in sorted(package.files):
        for pattern, what in _LATER.items():
            if fnmatchcase(path, pattern):
                problems.append(f"{path}: {what} not supported yet")
    for path, why in _WITHOUT_EFFECT.items():
        _check_without_effect(package, path, why, notes, problems)
    for path, content in package.under(_QUERY_PROFILES, ".xml"):
        _check_query_profile(path, content, notes, problems)


def _check_without_effect(
    package: ApplicationPackage, path: str, why: str, notes: list[Note], problems: list[str]
) -> None:
    if path not in package.files:
        return
    root = _parsed(package.files[path], path, problems)
    if root is not None and root.children:
        notes.append(Note(f"{path} has no effect: {why}", "INFO"))


def _check_query_profile(path: str, content: bytes, notes: list[Note], problems: list[str]) -> None:
    """A query profile that declares nothing changes nothing; any other would be missed by its queries."""
    root = _parsed(content, path, problems)
    if root is None:
        return
    if root.tag not in _PROFILE_ROOTS:
        problems.append(str(LanguageError(f"expected a query profile, not '{root.tag}'", root.position)))
    elif root.children:
        child = root.children[0]
        problems.append(str(LanguageError(f"'{child.tag}' in a query profile is not supported yet", child.position)))
    else:
        notes.append(Note(f"{path} declares nothing", "INFO"))


def _parsed(content: bytes, path: str, problems: list[str]) -> Element | None:
    try:
        return parse_xml(content, path)
    except LanguageError as error:
        problems.append(str(error))
        return None
