"""Three tiers of tests, and what a run says at its end. A pytest plugin; CONTRIBUTING.md explains the markers.

A test without a marker is in the first tier. Each marker needs a reason. With `--all-parts`, as in CI, a test that is
skipped since a program is missing fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from suspensions import crash_seed

TIERS = ("test", "all", "soak")  # each holds the ones before it
MARKERS = {"full": "all", "soak": "soak"}  # the first tier that runs a test so marked
COMMANDS = {"all": "make test-all", "soak": "make soak"}
REASON = "slow"  # stays in the first tier although it takes longer than `SECONDS_WITHOUT_REASON`
SECONDS_WITHOUT_REASON = 5.0
SLOWEST_SHOWN = 10
LEFT_OUT = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, default="test", help="up to which tier tests run (default: test)")
    parser.addoption("--all-parts", action="store_true", help="a test that is skipped, as a part is missing, fails")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = Counter()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_EndOfRun(config), "end_of_run")


@pytest.hookimpl(trylast=True)  # conftests may mark what they know of
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reached = TIERS.index(config.getoption("--tier"))
    left_out = [item for item in items if TIERS.index(tier_of(item)) > reached]
    config.stash[LEFT_OUT].update(tier_of(item) for item in left_out)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if TIERS.index(tier_of(item)) <= reached]


def tier_of(item: pytest.Item) -> str:
    """The first tier that runs it."""
    marks = [mark for mark in item.iter_markers() if mark.name in (*MARKERS, REASON)]
    if any(not mark.args for mark in marks):
        raise pytest.UsageError(f"{item.nodeid}: a marker of tests/support/tiers.py needs a reason")
    return max((MARKERS.get(mark.name, TIERS[0]) for mark in marks), key=TIERS.index, default=TIERS[0])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    for mark in item.iter_markers():
        if mark.name in (*MARKERS, REASON):
            report.user_properties.append((REASON, mark.args[0]))
    if item.config.getoption("--all-parts"):
        _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Of a module that skips itself as it is imported."""
    report = yield
    if collector.config.getoption("--all-parts"):
        _fail_if_skipped(report)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    report.outcome = "failed"
    report.longrepr = f"{_reason_of(report)}\n--all-parts demands every part: nothing may be skipped here"


def _reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return reason.removeprefix("Skipped: ")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of xdist hands to the one that reports what it left out: all of them left out the same."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash[LEFT_OUT])


class _EndOfRun:
    """Gathers, in the process that reports, how long each step took; says what was not run, and what was slow."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._steps: list[tuple[float, str, str]] = []  # seconds, test and step, reason

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reason = dict(report.user_properties).get(REASON, "")
        self._steps.append((report.duration, f"{report.nodeid} ({report.when})", str(reason)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        left_out = getattr(node, "workeroutput", {}).get("left_out", {})
        self._config.stash[LEFT_OUT] = Counter(left_out)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        if sum(seconds for seconds, _, _ in self._steps) > SECONDS_WITHOUT_REASON:
            write(f"the {SLOWEST_SHOWN} slowest:")
            for seconds, step, reason in sorted(self._steps, reverse=True)[:SLOWEST_SHOWN]:
                is_unexplained = seconds > SECONDS_WITHOUT_REASON and not reason
                write(f"  {seconds:5.1f} s  {step}  {'NO REASON GIVEN' if is_unexplained else reason}")
        skipped = Counter(_reason_of(report) for report in terminalreporter.stats.get("skipped", []))
        for reason, count in skipped.items():
            write(f"NOT TESTED ({count}): {reason}", yellow=True, bold=True)
        if self._config.getoption("--tier") == "all":
            write(f"where awaits were crashed at, not all of them: CRASH_SEED={crash_seed()}")
        left_out = self._config.stash[LEFT_OUT]
        if left_out:
            write(
                "left out: " + ", ".join(f"{left_out[tier]} of `{COMMANDS[tier]}`" for tier in TIERS if left_out[tier])
            )
