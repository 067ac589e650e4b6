"""The reference of the command line, from what `--help` shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from extproc.cli import memproxy
from memory.cli.options import MEMORIES, OPERATION, PARTS, THE_PRODUCT
from reference_pages.markdown import code, document, paragraphs, prose, table

INTRODUCTION = """Every command shows this with `--help`. [Tools](../run.md#tools) has the exit codes, and says
which guide describes the larger commands."""
PANELS = (THE_PRODUCT, MEMORIES, OPERATION, PARTS)
SHOWN_EVERYWHERE = "--help"


def page() -> str:
    root: Any = get_command(memproxy)
    context = root.context_class(root, info_name="memproxy")
    blocks = ["# Command line reference", INTRODUCTION]
    for panel in PANELS:
        blocks.append(f"## {panel}")
        for name, command in root.commands.items():
            if command.rich_help_panel == panel:
                blocks += _command(name, command, context)
    return document(*blocks)


def _command(name: str, command: Any, parent: Any) -> Iterator[str]:  # noqa: ANN401 - the parser's own, private in typer
    """The command, then those below it."""
    context = command.context_class(command, info_name=name, parent=parent)
    yield f"### {code(context.command_path)}"
    yield paragraphs(command.help or "")
    below = getattr(command, "commands", {})
    if not below:
        yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
        yield table(("argument or option", "meaning"), list(_parameters(command, context)))
    for child, one in below.items():
        yield from _command(child, one, context)


def _parameters(command: Any, context: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - likewise
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and SHOWN_EVERYWHERE not in parameter.opts:
            yield code(record[0]), prose(record[1])
