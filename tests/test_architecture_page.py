"""docs/ARCHITECTURE.md is true of the tree: its stages exist, and those without IO are held to that by a contract."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
PURE = "Pure stages import no adapter"


class Stage(NamedTuple):
    """One row of the table: its files or folders, relative to the root, and the column of its IO."""

    name: str
    paths: tuple[str, ...]
    io: str


def stages() -> list[Stage]:
    """The rows of the table. A file that is named without its folder stands beside the one before it."""
    table = PAGE.read_text(encoding="utf-8").split("| stage | file |")[1].split("\n\n")[0]
    found: list[Stage] = []
    for row in table.splitlines()[2:]:
        name, files, _, io = (cell.strip() for cell in row.strip("|").split("|"))
        paths: list[str] = []
        for path in re.findall(r"`([^`]+)`", files):
            paths.append(path if "/" in path else f"{Path(paths[-1]).parent}/{path}")
        found.append(Stage(name, tuple(paths), io))
    return found


def pure_modules() -> tuple[str, ...]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (pure,) = (contract for contract in contracts if contract["name"].startswith(PURE))
    return tuple(pure["source_modules"])


def module_of(path: str) -> str:
    return path.removesuffix("/").removesuffix(".py").replace("/", ".")


def is_pure(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in pure_modules())


def test_every_stage_has_its_files() -> None:
    assert len(stages()) > 20
    assert [path for stage in stages() for path in stage.paths if not (ROOT / path).exists()] == []


def test_a_stage_without_io_is_held_to_that_by_the_import_contract() -> None:
    python = [(stage, path) for stage in stages() for path in stage.paths if path.endswith((".py", "/"))]
    pure = {path for stage, path in python if stage.io.startswith("none")}
    assert sorted(path for path in pure if not is_pure(module_of(path))) == []
    assert len(pure) > 10


def test_a_stage_with_io_is_not_called_pure_by_the_contract() -> None:
    main_files = [(stage.paths[0], stage.io) for stage in stages()]
    assert [path for path, io in main_files if not io.startswith("none") and is_pure(module_of(path))] == []


def test_every_pure_module_of_the_contract_exists() -> None:
    missing = [
        module
        for module in pure_modules()
        if not (ROOT / f"{module.replace('.', '/')}.py").exists() and not (ROOT / module.replace(".", "/")).is_dir()
    ]
    assert missing == []
