"""The Markdown documents of the repository: their code blocks, commands, links and headings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ROOT / "docs" / "reference"  # made whenever the site is built
SITE = sorted(path for path in (ROOT / "docs").rglob("*.md") if not path.is_relative_to(GENERATED))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *SITE]
MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of code; `line` counts from 1."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@cache
def tokens(page: Path) -> list[Token]:
    return MARKDOWN.parse(page.read_text(encoding="utf-8"))


def blocks(*languages: str) -> list[Block]:
    """Of all pages; without languages, all of them."""
    return [
        Block(page, token.map[0] + 1 if token.map else 0, token.info.strip(), token.content)
        for page in PAGES
        for token in tokens(page)
        if token.type == "fence" and (not languages or token.info.strip() in languages)
    ]


def block(page: str, language: str, *, holding: str) -> str:
    """The one block of that page with these words."""
    (found,) = [one for one in blocks(language) if one.page.name == page and holding in one.text]
    return found.text


def commands(script: str) -> list[list[str]]:
    """The commands of a shell block as words: quotations and \\ go on in the next line, comments are left out."""
    found, waiting = [], ""
    for line in script.replace("\\\n", "").splitlines():
        waiting += line + "\n"
        try:
            words = shlex.split(waiting, comments=True)
        except ValueError:  # a quotation is open
            continue
        if words:
            found.append(words)
        waiting = ""
    assert not waiting, f"a quotation that does not end: {waiting}"
    return found


def inline(page: Path) -> Iterator[Token]:
    """What stands within paragraphs, headings and tables."""
    for token in tokens(page):
        yield from token.children or ()


def code_in_text(page: Path) -> list[str]:
    return [" ".join(token.content.split()) for token in inline(page) if token.type == "code_inline"]


def links(page: Path) -> list[str]:
    return [str(token.attrs["href"]) for token in inline(page) if token.type == "link_open"]


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    parsed = tokens(page)
    titles = [parsed[number + 1].children or [] for number, one in enumerate(parsed) if one.type == "heading_open"]
    return {slug("".join(part.content for part in title)) for title in titles}


def slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
