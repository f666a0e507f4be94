"""Every page is in the index, and every link leads to a file that exists, and to a heading of it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import DOCS, ROOT, anchors, links
from tests.test_tidy import texts


def is_broken(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    return not file.exists() or bool(anchor and anchor not in anchors(file.resolve()))


def test_links_lead_somewhere() -> None:
    pages = [ROOT / name for name in texts() if name.endswith(".md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in links(page)
        if not target.startswith(("http:", "https:")) and is_broken(page, target)
    ]
    assert broken == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b` c!\n\n[one](#a-b-c) [two](#a-b) [three](other.md) [four](page.md#a-b-c) `[five](x.md)`\n")
    assert [target for target in links(page) if is_broken(page, target)] == ["#a-b", "other.md"]


def test_every_page_is_in_the_index() -> None:
    linked = {target for target in links(DOCS / "README.md") if "#" not in target}
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"README.md"}
    assert pages - linked == set()


def test_one_page_leads_to_all_differences() -> None:
    pages = (DOCS / "reference").glob("*.md")
    places = {f"{page.name}#{name}" for page in pages for name in anchors(page) if name.startswith("differences-from-")}
    whole = {target for target in places if target.startswith("differences.md#")}
    assert places - whole - set(links(DOCS / "reference" / "differences.md")) == set()


def test_the_code_of_the_pages_is_there() -> None:
    rows = re.findall(r"`([\w/.]+)`", (DOCS / "internals" / "code-by-page.md").read_text())
    package = ROOT / "src" / "paperwasp"
    assert [path for path in rows[1:] if not (package / path).exists() and not (ROOT / path).exists()] == []
