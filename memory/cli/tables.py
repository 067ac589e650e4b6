"""Rows as text: a table where each word fits its column, else a paragraph per row; outside a terminal a line per row.

In a terminal rows may stand indented below a heading that they share, such as the sentence of several facts.
Pure. No word is cut, and no character is left out. Control and direction characters, which could mislead a terminal,
become U+FFFD; where a row is one line, line breaks become spaces.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.cells import cell_len

GAP, INDENT = "  ", "  "
WRAPPED_MIN = 24  # columns that wrapped text gets; with fewer, paragraphs are easier to read
ALIGNED_MAX = 40  # columns; outside a terminal longer cells are not padded to each other
JOINERS = "\u200c\u200d"  # Persian words, emoji

Cells = Sequence[str]


def laid_out(
    head: Cells,
    rows: Sequence[Sequence[object]],
    *,
    width: int | None,
    is_right: bool = False,
    headings: Sequence[str] = (),
) -> Iterator[str]:
    """Lines. `width`: columns of the terminal; None: there is none. `is_right`: figures behind a name. `headings`: of
    each row, "" for none; rows with the same one stand next to one another.
    """
    cells = [[_plain(value) for value in row] for row in (head, *rows)]
    above = ["", *map(_plain, headings or [""] * len(rows))]
    if width is None:
        yield from _lines(cells, is_right=is_right)
        return
    indent = INDENT if any(above) else ""
    widths = _widths(cells, width - len(indent))
    if widths is None and not rows:
        yield from _wrapped(GAP.join(cells[0]), width)
    for number, (row, heading) in enumerate(zip(cells, above, strict=True)):
        yield from [""] * (widths is None and number > 1)
        if heading and heading != above[number - 1]:
            yield from _wrapped(heading, width)
        if widths is not None:
            indented = widths if heading else [widths[0] + len(indent), *widths[1:]]
            shown = _table_row(row, indented, is_right=is_right)
        else:
            shown = _paragraph(cells[0], row, width - len(indent)) if number else iter(())
        yield from (INDENT + line if heading else line for line in shown)


def _lines(cells: Sequence[Cells], *, is_right: bool) -> Iterator[str]:
    cells = [[cell.replace("\n", " ") for cell in row] for row in cells]
    aligned = [_aligned(column) for column in zip(*cells, strict=True)]
    return (_side_by_side(row, aligned, is_right=is_right) for row in cells)


def _plain(value: object) -> str:
    return "\n".join("".join(map(_shown, line)) for line in str(value).splitlines())


def _shown(character: str) -> str:
    if character.isprintable() or character in JOINERS or unicodedata.category(character) == "Zs":
        return character
    return " " if character == "\t" else "\ufffd"


def _aligned(column: Cells) -> int:
    return max((size for size in map(cell_len, column) if size <= ALIGNED_MAX), default=0)


def _widths(cells: Sequence[Cells], room: int) -> list[int] | None:
    """Columns of each cell, or None if some word would be cut. What is left goes to those that lack least."""
    columns = list(zip(*cells, strict=True))
    natural = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    words = [
        max(cell_len(word) for cell in column for word in cell.split()) if any(column) else 0 for column in columns
    ]
    widths = [min(whole, max(word, WRAPPED_MIN)) for whole, word in zip(natural, words, strict=True)]
    spare = room - len(GAP) * (len(columns) - 1) - sum(widths)
    if spare < 0:
        return None
    by_need = sorted(range(len(columns)), key=lambda number: natural[number] - widths[number])
    for place, number in enumerate(by_need):
        more = min(natural[number] - widths[number], spare // (len(columns) - place))
        widths[number] += more
        spare -= more
    return widths


def _table_row(row: Cells, widths: Sequence[int], *, is_right: bool) -> Iterator[str]:
    wrapped = (_wrapped(cell, size) for cell, size in zip(row, widths, strict=True))
    return (_side_by_side(line, widths, is_right=is_right) for line in zip_longest(*wrapped, fillvalue=""))


def _side_by_side(row: Cells, widths: Sequence[int], *, is_right: bool) -> str:
    parts = []
    for number, (cell, size) in enumerate(zip(row, widths, strict=True)):
        padding = " " * (size - cell_len(cell))
        parts.append(padding + cell if is_right and number else cell + padding)
    return GAP.join(parts).rstrip(" ")


def _paragraph(head: Cells, row: Cells, width: int) -> Iterator[str]:
    """The first cell, mostly an id to copy, alone; then the others, each with its name."""
    yield row[0]
    for name, cell in zip(head[1:], row[1:], strict=True):
        first, *others = _wrapped(f"{name}: {cell}", width - 2 * len(INDENT))
        yield INDENT + first
        yield from (2 * INDENT + other for other in others)


def _wrapped(text: str, width: int) -> list[str]:
    lines = []
    for line in text.split("\n"):
        kept, *words = line.split(" ")
        for word in words:
            if cell_len(kept) + 1 + cell_len(word) > width:
                lines.append(kept)
                kept = word
            else:
                kept = f"{kept} {word}"
        lines.append(kept)
    return lines
