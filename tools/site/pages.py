"""What the site of the documentation needs beside the pages: a hook of MkDocs.

The navigation is the index, docs/README.md: its headings are sections, the links in its tables are pages with their
titles. Pages at the root of the repository that the index names are part of the site. Other links out of docs/ lead to
sources, which the site does not have: they become plain text. A site that loads anything from elsewhere is an error.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs" / "README.md"
_ENTRY = re.compile(r"^(?:(##+) (.*)|\| \[([^\]]+)\]\(([^)#]+)\) \|.*)$", re.MULTILINE)
_PART = re.compile(
    r"^```.*?^```$|(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)|(?P<code>`[^`\n]*`)",
    re.MULTILINE | re.DOTALL,
)
_LOADED = re.compile(r"""(?:<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=["']?|url\(["']?)(https?:)?//[^"'>) ]+""")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Makes the navigation."""
    config.nav = navigation(INDEX.read_text())
    return config


def navigation(index: str) -> list[Any]:
    """Return the sections and pages of the index, as MkDocs takes them; a subsection is a section in its section."""
    levels: list[list[Any]] = [[{"Documentation": "README.md"}]]
    for marks, heading, title, path in _ENTRY.findall(index):
        if path:
            levels[-1].append({title: page_of(path)})
        else:
            del levels[len(marks) - 1 :]
            levels.append([])
            levels[-2].append({heading: levels[-1]})
    return levels[0]


def page_of(path: str) -> str:
    """Return the page of a link of the index: pages at the root of the repository go by their lower-case names."""
    return path.removeprefix("../").lower() if path.startswith("../") else path


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages at the root of the repository that the index names."""
    for path in root_pages():
        files.append(File.generated(config, page_of(f"../{path}"), content=(ROOT / path).read_text()))
    return files


def root_pages() -> list[str]:
    """Return the names of those pages."""
    paths = [path for *_, path in _ENTRY.findall(INDEX.read_text())]
    return [path.removeprefix("../") for path in paths if path.startswith("../")]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links to where the site has what they mean, and takes the escapes of tables out of code."""

    def one(part: re.Match[str]) -> str:
        if part["target"]:
            return led(part["text"], part["target"], page.file.src_uri)
        return part[0].replace("\\|", "|") if part["code"] else part[0]

    return _PART.sub(one, markdown)


def led(text: str, target: str, source: str) -> str:
    """Return a link as the site has it: to a page; the text alone of a link to sources."""
    path, hash_mark, anchor = target.partition("#")
    if not path or ":" in path:
        return f"[{text}]({target})"
    folder = "" if source in map(page_of, (f"../{path}" for path in root_pages())) else f"docs/{source}"
    full = posixpath.normpath(posixpath.join(posixpath.dirname(folder), path))
    if full in root_pages():
        full = f"docs/{full.lower()}"
    if not full.startswith("docs/"):
        return text
    path = posixpath.relpath(full.removeprefix("docs/"), posixpath.dirname(source) or ".")
    return f"[{text}]({path}{hash_mark}{anchor})"


def on_post_build(config: MkDocsConfig) -> None:
    """Fails where a page or a style loads anything from elsewhere."""
    built = [path for kind in ("*.html", "*.css") for path in Path(config.site_dir).rglob(kind)]
    loaded = {found[0] for path in built for found in _LOADED.finditer(path.read_text())}
    if loaded:
        raise PluginError(f"The site loads from elsewhere: {sorted(loaded)}")
