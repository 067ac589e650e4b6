"""Which columns of a CRM-like file make a memory. Light to import: the command line declares its options with it."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Annotated

from typer import Option

from memory.cli.options import MemoryTypeName
from memory.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    content_template: Annotated[
        str, Option(help='What to remember, with columns in braces: "{name} works at {company}".')
    ]
    user_column: Annotated[str, Option(help="The column with the user's id; or give --user.")] = ""
    user: Annotated[str, Option(help="Whose memories, where all rows are about one user.")] = ""
    created_at_column: Annotated[str, Option(help="The column with the time: ISO 8601 or Unix seconds.")] = ""
    project_column: Annotated[str, Option(help="The column with the id of a project.")] = ""
    id_column: Annotated[str, Option(help="The column that identifies a row. [default: its words]")] = ""
    metadata_columns: Annotated[
        list[str] | None, Option("--metadata-column", help="Kept in the metadata under its name; repeatable.")
    ] = None
    memory_type: Annotated[MemoryTypeName, Option(help="The type of all memories.")] = MemoryTypeName.SEMANTIC
    category: Annotated[str, Option(help="The category of all memories, such as fact or preference.")] = "fact"
    importance: Annotated[float, Option(min=0.0, max=1.0, help="The importance of all memories.")] = 0.5

    def pieces(self) -> list[tuple[str, str]]:
        """Literal text and the column after it. Raises `BadInput` for anything but plain names in braces."""
        try:
            parsed = list(string.Formatter().parse(self.content_template))
        except ValueError as error:
            raise BadInput(f"--content-template {self.content_template!r:.80}: {error}") from None
        for _, name, spec, conversion in parsed:
            if name == "" or spec or conversion:
                raise BadInput(
                    f"--content-template {self.content_template!r:.80}: give a column's name in braces, as in {{name}}"
                )
        if not any(name for _, name, *_ in parsed):
            raise BadInput(
                f"--content-template {self.content_template!r:.80} names no column: every row would say the same"
            )
        return [(text, name or "") for text, name, *_ in parsed]

    def needed(self) -> list[str]:
        """The columns that every row must have."""
        named = [name for _, name in self.pieces()]
        named += [self.user_column, self.created_at_column, self.project_column, self.id_column]
        named += self.metadata_columns or []
        return list(dict.fromkeys(name for name in named if name))
