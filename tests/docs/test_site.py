"""The site is built without a warning, has everything that the code declares, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from documents import ROOT, slug
from prometheus_client import CollectorRegistry
from reference_pages import FOLDER, write_pages
from reference_pages.notes import notes
from reference_pages.rest_page import METHODS, SHORT_NAME, openapi_document
from typer.main import get_command

from extproc.cli import memproxy
from memory.api.mcp import TOOLS
from memory.runtime.metrics import Metrics
from memory.settings import every_setting

SPHINX = ("-m", "sphinx", "--quiet", "--nitpicky", "--fail-on-warning", "--keep-going", "-b", "html")
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
NOT_LOADED = {"canonical", "author", "search", "index", "next", "prev", "genindex"}  # links of other pages
FETCHED_BY_STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?([a-z]*:?//[^'\")]+)")
FETCHED_BY_SCRIPT = re.compile(r"(?:fetch|importScripts|import|sendBeacon)\(\s*['\"`](?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make docs` builds it, in a folder of this test."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, *SPHINX, "-d", folder / "doctrees", ROOT / "docs", folder / "html"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder / "html"


class Loaded(HTMLParser):
    """What a browser fetches when it shows a page; and the ids that a link may name."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.ids: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if "id" in given:
            self.ids.add(given["id"] or "")
        if tag in LOADING and not set((given.get("rel") or "").split()) & NOT_LOADED:
            self.urls.append(given.get(LOADING[tag]) or "")


def pages(site: Path) -> Iterator[tuple[Path, Loaded]]:
    for page in sorted(site.rglob("*.html")):
        yield page, Loaded(page.read_text(encoding="utf-8"))


def ids_of(site: Path, page: str) -> set[str]:
    return Loaded((site / page).read_text(encoding="utf-8")).ids


@pytest.mark.full("builds the site")
def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    loaded = [(page.name, url) for page, found in pages(site) for url in found.urls]
    assert len(loaded) > 100
    assert [one for one in loaded if urlsplit(one[1]).netloc or urlsplit(one[1]).scheme not in {"", "data"}] == []
    styles = [(path.name, FETCHED_BY_STYLE.findall(path.read_text(encoding="utf-8"))) for path in site.rglob("*.css")]
    assert styles
    assert [one for one in styles if one[1]] == []
    scripts = [path for path in site.rglob("*.js") if FETCHED_BY_SCRIPT.search(path.read_text(encoding="utf-8"))]
    assert scripts == []


@pytest.mark.full("builds the site")
def test_every_setting_is_in_the_reference_with_its_default_and_its_variable(site: Path) -> None:
    known, text = ids_of(site, "reference/configuration.html"), text_of(site, "reference/configuration.html")
    assert [doc.path for doc in every_setting() if slug(doc.path) not in known] == []
    assert [doc.path for doc in every_setting() if doc.environment not in text] == []
    assert "Takes a whole number from 0 to 65535; default: 8080; environment: MEMPROXY_PORT." in text


@pytest.mark.full("builds the site")
def test_every_call_every_tool_and_every_command_is_in_its_reference(site: Path) -> None:
    rest, mcp, line = (text_of(site, f"reference/{name}.html") for name in ("rest", "mcp", "commands"))
    document = openapi_document()
    operations = [
        (method, path, described["operationId"])
        for path, methods in document["paths"].items()
        for method, described in methods.items()
        if method in METHODS
    ]
    shown = [(f"{method.upper()} {path}", name) for method, path, name in operations if not name.endswith(SHORT_NAME)]
    assert len(shown) >= 25
    assert [call for call, _ in shown if call not in rest] == []
    assert [path for _, path, name in operations if name.endswith(SHORT_NAME) and path not in rest] == []
    known = ids_of(site, "reference/rest.html")
    assert [name for name in document["components"]["schemas"] if name.lower() not in known] == []
    assert [name for name in TOOLS if name not in mcp] == []
    assert [name for name in command_names() if name not in line] == []


def command_names() -> list[str]:
    root: Any = get_command(memproxy)
    subs = [f"memproxy {name} {child}" for name, one in root.commands.items() for child in getattr(one, "commands", {})]
    return [f"memproxy {name}" for name in root.commands] + subs


def text_of(site: Path, page: str) -> str:
    """Without markup, and each run of white space as one space."""
    words: list[str] = []

    class Text(HTMLParser):
        def handle_data(self, data: str) -> None:
            words.append(data)

    Text().feed((site / page).read_text(encoding="utf-8"))
    return " ".join("".join(words).split())


def test_references_are_made_with_their_notes_and_no_note_is_about_what_is_not_declared(tmp_path: Path) -> None:
    """Writing them refuses such a note."""
    write_pages(tmp_path)
    made = {page.name: page.read_text(encoding="utf-8") for page in (tmp_path / FOLDER).iterdir()}
    families = Metrics(CollectorRegistry()).registry.collect()
    assert [family.name for family in families if f"## `{family.name}`" not in made["metrics.md"]] == []
    assert "`backlog` (it is too slow" in made["metrics.md"].split("## `memproxy_turns_lost`")[1].split("##")[0]
    assert "It has to exist." in made["configuration.md"].split("### `memory.milvus.database`")[1].split("###")[0]
    assert "`rewritten`" in made["rest.md"].split("### `GET /v1/memory/erasures/{id}`")[1].split("###")[0]
    with pytest.raises(ValueError, match=r"memory\.milvus\.database"):
        notes("settings.md", ())


def test_no_guide_is_too_long_to_be_followed() -> None:
    guides = set((ROOT / "docs").glob("*.md")) - {ROOT / "docs" / "ARCHITECTURE.md"}
    limits = {ROOT / "README.md": 150, **dict.fromkeys(sorted(guides), 300)}
    lengths = {page.name: page.read_text(encoding="utf-8").count("\n") for page in limits}
    assert {page.name: lengths[page.name] for page, most in limits.items() if lengths[page.name] > most} == {}
