"""The rules of the house that no linter keeps: sizes, boundaries, names that documents and dashboards hang on."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from memory.recall.ranking.weights import NAMES
from memory.runtime.metrics import Metrics
from memory.settings import every_setting

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_LINES_MAX = 60
MODULE_LINES_MAX = 400
PARAMETERS_MAX = 6  # past it, what travels together is a value of its own; tests set fields of a record one by one
BROAD = {"Exception", "BaseException"}
BROAD_ALLOWED = {
    "extproc/server.py": 1,  # one stream: nothing else may end there
    "memory/learn/worker.py": 1,  # one job: likewise
    "tests/support/suspensions.py": 2,  # stands where the loop stands, and hands on whatever it throws
}
BENCHES = "bench/**/*.py"
LEARNING_LINES_MAX = 7_900  # of memory/learn and memory/language; 8,060 before a memory was one fact
SETTINGS_MAX = 120  # what nobody has a reason to change is a constant beside its reason
PATTERN_CHARACTERS_MAX = {
    "extproc/exchange": 51,
    "extproc/reply": 31,
    "extproc/supervisor": 34,
    "memory/adapters": 12,
    "memory/api": 39,
    "memory/chat": 20,
    "memory/evaluation": 64,
    "memory/language": 246,
    "memory/learn": 204,
    "memory/model": 139,
    "memory/recall": 6_206,
    "memory/secrets": 942,
}
PATTERN_CHARACTERS_IN_ALL = 7_988  # 15,000 were asked for at most
PRODUCTION = ("extproc/**/*.py", "memory/**/*.py")
SOURCES = (*PRODUCTION, BENCHES, "docs/**/*.py", "tests/**/*.py")
# Written in two halves each, or this file would be the first to break the rule.
MACHINE_PATHS = re.compile("|".join(("/wo" + "rk/", "/ro" + "ot/", "/tmp/" + "brief", "bash" + "_jobs", "/ho" + "me/")))
TRAINING_TEXTS = ROOT / "bench" / "reader" / "texts"  # whose people paste tracebacks, with paths of no machine
OUR_PATHS = re.compile(r"`((?:memory|extproc|tests|bench|envoy)/[a-z0-9_/.]+)`")


@pytest.fixture(scope="module", autouse=True)
def _trees_are_no_garbage() -> Iterator[None]:
    """Looking for garbage among a million nodes, again and again, would take most of the time."""
    gc.disable()
    yield
    parsed.cache_clear()
    gc.enable()


def modules(*patterns: str) -> list[Path]:
    return sorted(
        {path for pattern in patterns for path in ROOT.glob(pattern) if "_pb" not in path.relative_to(ROOT).parts}
    )


def trees(*patterns: str) -> Iterator[tuple[str, ast.Module]]:
    """Each module that these patterns name, parsed, or each that we have."""
    for path in modules(*(patterns or SOURCES)):
        yield str(path.relative_to(ROOT)), parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def our_files() -> list[Path]:
    """What is committed, or would be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def test_no_module_is_longer_than_a_reader_holds_in_mind() -> None:
    lengths = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8").count("\n") for p in modules(*SOURCES)}
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES_MAX} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{name}:{function.name}": lines
        for name, tree in trees()
        for function in functions_in(tree)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    }
    assert long == {}


def functions_in(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Without the object or the class that a method belongs to."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_no_function_takes_more_than_a_caller_keeps_apart() -> None:
    crowded = {
        f"{name}:{function.name}": count
        for name, tree in trees(*PRODUCTION, BENCHES)
        for function in functions_in(tree)
        if (count := parameters_of(function)) > PARAMETERS_MAX
    }
    assert crowded == {}


def pattern_characters() -> Counter[str]:
    """Characters of string literals that patterns are made of, by package of production code."""
    found = Counter[str]()
    for name, tree in trees(*PRODUCTION):
        found["/".join(name.split("/")[:2]).removesuffix(".py")] += sum(map(len, pattern_literals(tree)))
    return found


def pattern_literals(tree: ast.Module) -> list[str]:
    """The literals given to functions of `re`, and those in whatever has a name and is put into them."""
    pieces: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    pieces.setdefault(target.id, []).append(node.value)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_of_re(node.func))
    waiting: list[ast.expr] = [argument for call in calls for argument in call.args[:1]]
    literals: dict[ast.Constant, str] = {}
    while waiting:
        for part in ast.walk(waiting.pop()):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                literals[part] = part.value
            if isinstance(part, ast.Name):
                waiting += pieces.pop(part.id, [])
    return list(literals.values())


def is_of_re(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"


def test_understanding_is_no_regular_expression() -> None:
    """Budgets may only fall: what a sentence means is decided by a model, what is lexical is data."""
    assert {p: c for p, c in pattern_characters().items() if c > PATTERN_CHARACTERS_MAX.get(p, 0)} == {}
    assert sum(PATTERN_CHARACTERS_MAX.values()) <= PATTERN_CHARACTERS_IN_ALL


def test_learning_stays_small_enough_to_be_read() -> None:
    files = modules("memory/learn/**/*.py", "memory/language/**/*.py")
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in files)
    assert lines <= LEARNING_LINES_MAX


def test_settings_stay_few_enough_to_be_read() -> None:
    assert len(list(every_setting())) <= SETTINGS_MAX


def catches_everything(node: ast.AST) -> bool:
    """A bare or broad `except`, or `suppress` of the same."""
    if isinstance(node, ast.ExceptHandler):
        return node.type is None or bool(BROAD & names_in(node.type))
    if isinstance(node, ast.Call) and "suppress" in names_in(node.func):
        return any(BROAD & names_in(argument) for argument in node.args)
    return False


def names_in(node: ast.AST) -> set[str]:
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def test_a_broad_except_stands_at_the_two_named_boundaries_only() -> None:
    counts = {name: sum(map(catches_everything, ast.walk(tree))) for name, tree in trees()}
    assert {name: count for name, count in counts.items() if count > BROAD_ALLOWED.get(name, 0)} == {}


def test_no_function_rebinds_a_global() -> None:
    assert [name for name, tree in trees() if any(isinstance(node, ast.Global) for node in ast.walk(tree))] == []


def test_no_two_public_classes_have_the_same_name() -> None:
    nodes = (node for _, tree in trees(*PRODUCTION) for node in ast.walk(tree))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("folder", ["proto", "envoy", "tests"])
def test_folders_whose_import_names_are_not_ours_hold_no_package(folder: str) -> None:
    assert list((ROOT / folder).rglob("__init__.py")) == []


def test_nothing_that_is_committed_knows_the_machine_it_was_written_on() -> None:
    knowing = []
    for path in our_files():
        if path.is_relative_to(TRAINING_TEXTS):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if found := MACHINE_PATHS.search(text):
            knowing.append(f"{path.relative_to(ROOT)}: {found[0]}")
    assert knowing == []


def test_every_file_that_the_documents_name_is_there() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {path for page in pages for path in OUR_PATHS.findall(page.read_text(encoding="utf-8"))}
    assert named
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_the_product_names_no_host_to_which_it_could_report() -> None:
    """Whatever it calls, the settings name; an address in the sources is of this machine, or shows how to write one."""
    texts = [path.read_text(encoding="utf-8") for path in modules(*PRODUCTION)]
    hosts = {host for text in texts for host in re.findall(r"https?://([\w.-]*\w\.[a-z]{2,})", text)}
    assert hosts
    assert {host for host in hosts if not host.endswith(".example")} == set()


def reads_in(tree: ast.AST) -> set[tuple[str, str]]:
    """Every `owner.name`, with the last word of the owner: `settings.memory.enabled` gives `memory`, `enabled`."""
    named = {node: node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    dotted = {node: node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    owners = {**named, **dotted}
    return {(owners.get(node.value, ""), name) for node, name in dotted.items()}


def reads_of_settings() -> set[tuple[str, str]]:
    """Whatever the sources read, and what a property of the settings reads for those of them that ask it."""
    sources = dict(trees(*PRODUCTION))
    settings = sources.pop("memory/settings/tree.py")
    reads = set().union(*map(reads_in, sources.values()))
    for node in ast.walk(settings):
        if isinstance(node, ast.FunctionDef) and ("settings", node.name) in reads:
            reads |= {("settings" if owner == "self" else owner, name) for owner, name in reads_in(node)}
    return reads | {("weights", name) for name in NAMES}  # which the ranking reads by their names, all of them


def test_every_setting_is_read_by_somebody() -> None:
    reads = reads_of_settings()
    sections = {doc.path: ("settings." + doc.path).split(".")[-2:] for doc in every_setting()}
    unread = {path for path, (section, name) in sections.items() if (section, name) not in reads}
    assert unread == set()


def test_every_metric_is_watched_and_every_metric_that_an_alert_or_a_dashboard_names_exists() -> None:
    rules = [ROOT / "envoy" / name for name in ("alerts.yml", "recording.yml")]
    files = [*rules, *(ROOT / "envoy" / "grafana").glob("*.json")]
    texts = (path.read_text(encoding="utf-8") for path in files)
    watched = {name for text in texts for name in re.findall(r"\bmemproxy_[a-z0-9_]+\b", text)}
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
    families = list(Metrics(CollectorRegistry()).registry.collect())
    assert watched - {family.name + ending for family in families for ending in endings[family.type]} == set()
    assert [one.name for one in families if not any(name.startswith(one.name) for name in watched)] == []
