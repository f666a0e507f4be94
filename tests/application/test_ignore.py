"""`.vespaignore`: patterns as Go's `filepath.Match` has them. Authority: its documentation."""

from __future__ import annotations

import pytest

from paperwasp.application.package import parse_ignored
from paperwasp.errors import LanguageError


@pytest.mark.parametrize(
    ("pattern", "path", "is_ignored"),
    [
        ("abc", "abc", True),
        ("*", "abc", True),
        ("*c", "abc", True),
        ("a*", "ab/c", False),
        ("a*/b", "abc/b", True),
        ("a*b*c*d*e*/f", "axbxcxdxe/f", True),
        ("a*b?c*x", "abxbbxdbxebxczzx", True),
        ("a?c", "a/c", False),
        ("ab[c]", "abc", True),
        ("ab[b-d]", "abc", True),
        ("ab[e-g]", "abc", False),
        ("ab[^c]", "abc", False),
        ("ab[^e-g]", "abc", True),
        ("ab[!c]", "ab!", True),
        ("a\\*b", "a*b", True),
        ("a\\*b", "ab", False),
        ("[\\]a]", "]", True),
        ("[x\\-]", "-", True),
        ("**/x", "a/b/x", False),
        ("foo/", "foo/a/b", True),
        ("foo/", "foo", False),
        ("foo/", "a/foo/b", False),
        ("README.md", "docs/README.md", False),
        ("a.c", "abc", False),
        ("ü*", "über", True),
    ],
)
def test_a_pattern_fits_a_path_or_not(pattern: str, path: str, is_ignored: bool) -> None:
    assert (path in parse_ignored(f"# comment\n\n  {pattern}  \n")) is is_ignored


def test_nothing_is_ignored_without_patterns() -> None:
    assert "a" not in parse_ignored("")
    assert "a" not in parse_ignored("# a\n \n")


@pytest.mark.parametrize("pattern", ["[]a]", "[-]", "[x-]", "[-x]", "[", "[^", "[^bc", "a[", "[a-b-c]", "\\", "[b-a]"])
def test_a_bad_pattern_is_an_error_with_its_line(pattern: str) -> None:
    with pytest.raises(LanguageError, match=r"\.vespaignore, line 2, column 1: bad pattern"):
        parse_ignored(f"*.md\n{pattern}")
