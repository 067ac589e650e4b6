"""Shared by all commands: tables and JSON.

Content of memories and files is printed as plain text only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress, groupby
from typing import Any

from typer import echo


def print_json(content: object) -> None:
    import msgspec

    echo(msgspec.json.format(msgspec.json.encode(content)).decode())


def print_result(content: object, sentence: str, *, as_json: bool) -> None:
    """The JSON, or else the sentence that says the same."""
    if as_json:
        print_json(content)
    else:
        echo(sentence)


@contextmanager
def progress_bar(meaning: str, *, total: int | None = None) -> Iterator[Callable[[int, int | None], None]]:
    """A bar on standard error while long work lasts: `advance(done, total)`, both in the unit that `meaning` names."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    time = TimeRemainingColumn(elapsed_when_finished=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), time)
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(meaning, total=total)

        def advance(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        yield advance


@contextmanager
def waiting_for(first: str) -> Iterator[Callable[[str], None]]:
    """On standard error, what is waited for: one line that is renewed in a terminal, or a line for each change."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(first) as line:

        def change(state: str) -> None:
            line.update(state) if console.is_terminal else console.print(state, highlight=False)

        if not console.is_terminal:
            console.print(first, highlight=False)
        yield change


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, is_right: bool = False, headings: Sequence[str] = ()
) -> None:
    """Plain text that loses no word in a terminal of any width; in a pipe or file, one line per row, without headings.

    `is_right`, `headings`: as in `laid_out`.
    """
    import shutil
    import sys

    from memory.cli.tables import laid_out

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in laid_out(columns, rows, width=width, is_right=is_right, headings=headings):
        echo(line)


def print_rows(content: object, columns: Sequence[str], rows: Sequence[Sequence[object]], *, as_json: bool) -> None:
    """The JSON, or else a table that says the same."""
    if as_json:
        print_json(content)
    else:
        print_table(columns, rows)


def print_memories(memories: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """As REST returned them; with their scores, if they have some, and with their authors, if some are shared. In a
    terminal the facts of a sentence that follow one another stand below it.
    """
    if as_json:
        print_json({"memories": memories})
        return
    has_scores = any("score" in memory for memory in memories)
    has_authors = any(memory["visibility"] != "owner_only" for memory in memories)
    is_shown = (True, has_scores, True, True, has_authors, True)
    cells = [
        (m["id"], f"{m.get('score', 0.0):.3f}", m["said_at"], m["memory_type"], m["user_id"], m["content"])
        for m in memories
    ]
    head, *rows = (
        list(compress(row, is_shown)) for row in (("id", "score", "said at", "type", "author", "content"), *cells)
    )
    print_table(head, rows, headings=list(_sentences(memories)))


def _sentences(memories: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The sentence of each memory that stands next to another fact of it, "" for others."""
    for sentence_id, facts in groupby(memories, lambda one: one["sentence_id"]):
        shared = list(facts)
        has_heading = sentence_id is not None and len(shared) > 1
        yield from [f'"{shared[0]["evidence"][0]["quote"]}"' if has_heading else ""] * len(shared)
