"""Shared by all commands: the option for the configuration file, tables, and JSON.

Content of memories and files is printed as plain text only.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

ID_WIDTH = 36  # of a UUID
FIGURES_WIDTH = 200  # columns, if no terminal sets a limit

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=None,
    help="YAML file with settings. None is read unless named.",
)


def print_json(content: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(content)).decode())


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Plain text: no markup is interpreted, and no control character reaches the terminal.

    The first column, mostly an id to copy, is never truncated.
    """
    table = Table(box=None, pad_edge=False)
    longest = max((len(str(row[0])) for row in rows), default=0)
    for number, name in enumerate(columns):
        table.add_column(
            name, overflow="ellipsis" if number else "fold", min_width=0 if number else min(longest, ID_WIDTH)
        )
    for row in rows:
        table.add_row(*(_plain(value) for value in row))
    Console(soft_wrap=False).print(table)


def print_figures(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A name, then figures: not truncated in a narrow terminal, and one line per row in a file."""
    table = Table(box=None, pad_edge=False)
    for number, name in enumerate(head):
        table.add_column(_plain(name), justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_plain(value) for value in row))
    terminal = Console()
    (terminal if terminal.is_terminal else Console(width=FIGURES_WIDTH)).print(table)


def _plain(value: object) -> Text:
    return Text("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in str(value)))
