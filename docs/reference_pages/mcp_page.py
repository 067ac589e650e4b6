"""The reference of the MCP tools, from what the server lists."""

from __future__ import annotations

from collections.abc import Iterator

from memory.api.mcp import INSTRUCTIONS, TOOLS, MemoryTool
from reference_pages.markdown import code, document, prose, table
from reference_pages.rest_page import kind_of

INTRODUCTION = """[MCP](../api.md#mcp) says where the server is reached, and as whom it is
called. The texts below are those that a model reads."""


def page() -> str:
    blocks = ["# MCP reference", INTRODUCTION, "## Instructions", f"> {prose(INSTRUCTIONS)}", "## Tools"]
    for name, tool in TOOLS.items():
        blocks += _tool(name, tool)
    return document(*blocks)


def _tool(name: str, tool: MemoryTool) -> Iterator[str]:
    listed = tool.listed(name)
    yield f"### {code(name)}"
    yield f"> {prose(tool.description)}"
    hints = tool.hints
    effect = "reads only" if hints.read_only_hint else "deletes" if hints.destructive_hint else "adds"
    gives = (tool.call.__doc__ or "").partition("Raises")[0]
    yield f"{prose(gives)} Clients are told that it {effect}."
    schema = listed.input_schema
    needed = set(schema.get("required", ()))
    rows = [
        (f"{code(field)}{' *' if field in needed else ''}", kind_of(one), prose(one.get("description", "")))
        for field, one in schema["properties"].items()
    ]
    yield table(("argument", "takes", "meaning"), rows) or "It takes no arguments."
