"""What the references say beyond a declaration: `settings.md`, `metrics.md` and `rest.md` beside this file."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

HEADING = re.compile(r"^## `([^`]+)`$", re.MULTILINE)


def notes(name: str, declared: Collection[str]) -> dict[str, str]:
    """Markdown by what it is about.

    Raises:
        ValueError: it is about something that is not declared, or twice about the same.
    """
    _, *parts = HEADING.split((Path(__file__).parent / name).read_text(encoding="utf-8"))
    about = parts[::2]
    if wrong := sorted(one for one in set(about) if one not in declared or about.count(one) > 1):
        raise ValueError(f"{name} explains what is not declared, or explains it twice: {', '.join(wrong)}")
    return {one: text.strip() for one, text in zip(about, parts[1::2], strict=True)}
