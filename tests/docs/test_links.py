"""What the documents name is there: files, headings, tests, and the stages of docs/ARCHITECTURE.md with their IO.

Addresses on the web are checked for form only.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from documents import GENERATED, PAGES, ROOT, anchors, code_in_text, links, tokens

HELD = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)")
TEST = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)
ARCHITECTURE = ROOT / "docs" / "ARCHITECTURE.md"
PURE = "Pure stages import no adapter"


def problem_of(page: Path, link: str) -> str:
    """Why this link leads nowhere; "" if it does not."""
    url = urlsplit(link)
    if url.scheme:
        is_well_formed = url.scheme == "https" and "." in (url.hostname or "") and " " not in link
        return "" if is_well_formed or url.hostname in {"127.0.0.1", "localhost"} else "no address on the web"
    target = (page.parent / url.path).resolve() if url.path else page
    if target.is_relative_to(GENERATED):
        return ""  # the build of the site checks these, page and heading
    if not target.exists() or not target.is_relative_to(ROOT):
        return "no such file"
    if url.fragment and url.fragment not in anchors(target):
        return "no such heading"
    return ""


def test_links_of_the_documents_lead_somewhere() -> None:
    found = [(page, link) for page in PAGES for link in links(page)]
    assert len(found) > 100
    assert [(str(page.relative_to(ROOT)), link, why) for page, link in found if (why := problem_of(page, link))] == []


@cache
def defined_in(path: Path) -> set[str]:
    return set(TEST.findall(path.read_text(encoding="utf-8"))) if path.exists() else set()


def test_every_test_that_the_documents_name_is_in_the_file_that_they_name() -> None:
    named = {(page.name, *found) for page in PAGES for text in code_in_text(page) for found in HELD.findall(text)}
    assert len(named) > 100
    assert [one for one in sorted(named) if one[2] not in defined_in(ROOT / one[1])] == []
    alone = {text for page in PAGES for text in code_in_text(page) if re.fullmatch(r"test_\w+", text)}
    assert sorted(alone) == []


CLAIMING = [ROOT / "docs" / name for name in ("privacy.md", "security.md")]
NO_CLAIMS = (["part", "trusted for"], ["where", "what stays", "until"])  # heads of tables about what others do


def tables(page: Path) -> Iterator[list[list[str]]]:
    """The rows of each, the head first."""
    rows: list[list[str]] = []
    for token in tokens(page):
        if token.type == "table_open":
            rows = []
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and token.level and rows:
            rows[-1].append(token.content)
        elif token.type == "table_close":
            yield rows
            rows = []


@pytest.mark.parametrize("page", CLAIMING, ids=lambda page: page.name)
def test_each_claim_names_the_test_that_holds_it(page: Path) -> None:
    found = [rows for rows in tables(page) if rows[0] not in NO_CLAIMS]
    assert len(found) >= 4
    assert [rows[0] for rows in found if rows[0][-1] != "tested by"] == []
    assert [row[0] for rows in found for row in rows[1:] if not HELD.search(row[-1])] == []


class Stage(NamedTuple):
    """One row of the table: its files or folders, relative to the root, and the column of its IO."""

    name: str
    paths: tuple[str, ...]
    io: str


def stages() -> list[Stage]:
    """The rows of the table. A file that is named without its folder stands beside the one before it."""
    table = ARCHITECTURE.read_text(encoding="utf-8").split("| stage | file |")[1].split("\n\n")[0]
    found: list[Stage] = []
    for row in table.splitlines()[2:]:
        name, files, _, io = (cell.strip() for cell in row.strip("|").split("|"))
        paths: list[str] = []
        for path in re.findall(r"`([^`]+)`", files):
            paths.append(path if "/" in path else f"{Path(paths[-1]).parent}/{path}")
        found.append(Stage(name, tuple(paths), io))
    return found


@cache
def pure_modules() -> tuple[str, ...]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (pure,) = (contract for contract in settings["contracts"] if contract["name"].startswith(PURE))
    return tuple(pure["source_modules"])


def module_of(path: str) -> str:
    return path.removesuffix("/").removesuffix(".py").replace("/", ".")


def is_pure(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in pure_modules())


def test_every_stage_and_every_pure_module_of_the_contract_has_its_files() -> None:
    assert len(stages()) > 20
    assert [path for stage in stages() for path in stage.paths if not (ROOT / path).exists()] == []
    files = [ROOT / module.replace(".", "/") for module in pure_modules()]
    assert [str(path) for path in files if not path.is_dir() and not path.with_suffix(".py").exists()] == []


def test_the_import_contract_holds_those_stages_pure_that_have_no_io() -> None:
    python = [(stage, path) for stage in stages() for path in stage.paths if path.endswith((".py", "/"))]
    pure = {path for stage, path in python if stage.io.startswith("none")}
    assert sorted(path for path in pure if not is_pure(module_of(path))) == []
    assert len(pure) > 10
    with_io = [stage.paths[0] for stage in stages() if not stage.io.startswith("none")]
    assert [path for path in with_io if is_pure(module_of(path))] == []
