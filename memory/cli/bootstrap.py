"""`memproxy bootstrap`: what a CRM, or a file like its export, knows about users, as memories from the first chat on.

Reads the whole file before it sends anything, and stores through the REST API.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, BadParameter, Option, echo

from memory.cli.customer_columns import ColumnOptions
from memory.cli.options import ApiOption, ConfigOption, JsonOption
from memory.cli.output import print_json, print_result, print_table, progress_bar
from memory.errors import BadInput

if TYPE_CHECKING:
    from memory.cli.memory_rows import MemoryRow

SHOWN_OF_DRY_RUN = 5
FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoringOptions:
    """How memories from elsewhere are stored."""

    is_dry: Annotated[bool, Option("--dry-run", help="Check all rows and show the first; store nothing.")] = False
    api: ApiOption = None
    config: ConfigOption = None
    as_json: JsonOption = False


def bootstrap(
    file: Annotated[Path, Argument(exists=True, dir_okay=False, readable=True, help="CSV, or JSON Lines.")],
    columns: ColumnOptions,
    storing: StoringOptions,
    *,
    file_format: Annotated[
        Literal["csv", "jsonl"] | None, Option("--format", help="What the file is. [default: by its name]")
    ] = None,
    skip_incomplete: Annotated[
        bool, Option("--skip-incomplete", help="Leave out rows in which a value is empty; otherwise they are refused.")
    ] = False,
) -> None:
    """Store what a CRM-like file says about users: one memory per row.

    All rows are checked first; if one is wrong, nothing is stored. Running it again stores only what is new.
    """
    from memory.cli.customer_rows import csv_rows, json_rows, memory_rows
    from memory.cli.memory_rows import RowProblems, checked
    from memory.processes.composition import SYSTEM_CLOCK

    if bool(columns.user) == bool(columns.user_column):
        raise BadParameter("say whose memories they are: --user-column, or --user")
    problems = RowProblems()
    read = csv_rows if (file_format or _format_of(file)) == "csv" else json_rows
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = read(lines, columns.needed(), problems)
            made = memory_rows(rows, columns, problems, leaves_out_incomplete=skip_incomplete)
            found = list(checked(made, problems, now=SYSTEM_CLOCK()))
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8: {error}") from None
    problems.refuse()
    store(found, storing, incomplete=problems.incomplete)


def store(rows: Sequence[MemoryRow], options: StoringOptions, *, incomplete: int = 0) -> None:
    """Store the rows, or show the first of them, and print the counts."""
    if options.is_dry:
        _show(rows, incomplete, as_json=options.as_json)
        return
    from memory.cli.api_client import api_client
    from memory.cli.storing import Stored, store_rows

    stored = Stored()
    if rows:
        with (
            api_client(options.config, options.api, rows[0].user_id) as client,
            progress_bar("memories", total=len(rows)) as advance,
        ):
            stored = store_rows(client, rows, advance)
    counts = {**asdict(stored), "incomplete": incomplete}
    print_result(counts, _sentence(counts), as_json=options.as_json)


def _sentence(counts: dict[str, int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in counts.items())


def _show(rows: Sequence[MemoryRow], incomplete: int, *, as_json: bool) -> None:
    users = Counter(row.user_id for row in rows)
    counts = {"valid": len(rows), "incomplete": incomplete, "users": len(users)}
    if as_json:
        first = [{"user_id": row.user_id, **row.body()} for row in rows[:SHOWN_OF_DRY_RUN]]
        print_json({"is_dry_run": True, **counts, "first": first})
        return
    print_table(
        ["user", "where", "content"], [(row.user_id, row.where, row.memory.content) for row in rows[:SHOWN_OF_DRY_RUN]]
    )
    echo(_sentence(counts))


def _format_of(file: Path) -> str:
    found = FORMATS.get(file.suffix.lower())
    if found is None:
        raise BadParameter(f"{file.name} ends neither in .csv nor in .jsonl: say which with --format")
    return found
