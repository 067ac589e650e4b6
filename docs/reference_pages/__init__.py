"""Pages of the site that are made from the code whenever the site is built: settings, metrics, commands, REST, MCP.

Each module returns one page as Markdown and reads nothing but declarations, and the notes that stand beside it here,
so that a page cannot say anything else than the product does.
"""

from __future__ import annotations

from pathlib import Path

from reference_pages import command_page, mcp_page, metrics_page, rest_page, settings_page

FOLDER = "reference"


def write_pages(docs: Path) -> None:
    """Write all pages below `docs`; one that has not changed stays as it is, so that it is not built again."""
    pages = {
        "configuration.md": settings_page.page(),
        "metrics.md": metrics_page.page(),
        "commands.md": command_page.page(),
        "rest.md": rest_page.page(rest_page.openapi_document()),
        "mcp.md": mcp_page.page(),
    }
    folder = docs / FOLDER
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


__all__ = ["FOLDER", "write_pages"]
