"""With `--all-parts`, as in CI, a skipped test fails: a part that is missing there would leave what needs it untested.

A pytest plugin. Without the option, a machine may lack parts, and the end of the run lists the tests that were skipped.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

OPTION = "--all-parts"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help="a test that is skipped, as a part is missing, fails")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item.config.getoption(OPTION):
        _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Of a module that skips itself as it is imported."""
    report = yield
    if collector.config.getoption(OPTION):
        _fail_if_skipped(report)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    report.outcome = "failed"
    report.longrepr = f"{reason}\n{OPTION} demands every part: nothing may be skipped here"
