"""Pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence


def code(text: str) -> str:
    """Text as it is, in the type of code; "" stays empty."""
    return f"`{text}`" if text else ""


def prose(text: str) -> str:
    """A description from the code as one paragraph. What it says in backticks stays; HTML would be dropped."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def paragraphs(text: str) -> str:
    return "\n\n".join(prose(part) for part in text.strip().split("\n\n"))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table without columns that are empty, or nothing if it has no rows."""
    if not rows:
        return ""
    filled = [number for number in range(len(head)) if any(row[number] for row in rows)]
    lines = [[line[number] for number in filled] for line in (head, ["---"] * len(head), *rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def document(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block) + "\n"


def _escaped(text: str) -> str:
    return re.sub(r"([<>*\[\]])", r"\\\1", text)
