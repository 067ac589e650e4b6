"""What filters ahead of us may say, and how it is read."""

from __future__ import annotations

import pytest

from memory.recall.signals.classifier import SignalLabel
from memory.recall.signals.upstream import DEFAULT_RULES, NO_SIGNALS, UpstreamRule, names_of, read_upstream


@pytest.mark.parametrize(
    ("values", "means"),
    [
        ({"x-vsr-matched-fact-check": "needs_fact_check"}, SignalLabel.GENERAL_FACT),
        ({"x-vsr-fact-check-needed": "true"}, SignalLabel.GENERAL_FACT),
        ({"x-vsr-session-phase": "tool_loop"}, SignalLabel.TOOL),
        ({"x-disable-router-memory": "true"}, "skip"),
        ({"x-memory-intent": "personal"}, SignalLabel.PERSONAL),
        ({"memory.signals:intent": "search"}, "search"),
    ],
)
def test_the_routers_signals_are_understood_by_default(values: dict[str, str], means: str) -> None:
    found = read_upstream(values)
    assert (found.means, found.source) == (means, next(iter(values)))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"x-vsr-matched-fact-check": "no_fact_check_needed"},
        {"x-vsr-fact-check-needed": "false"},
        {"x-vsr-selected-category": "math", "x-vsr-selected-reasoning": "on"},
        {"x-memory-intent": "whatever"},
        {"x-memory-intent": ""},
    ],
)
def test_what_says_nothing_about_memory_is_no_signal(values: dict[str, str]) -> None:
    assert read_upstream(values) == NO_SIGNALS


def test_values_may_be_lists_and_case_does_not_count() -> None:
    assert read_upstream({"x-vsr-matched-fact-check": "other, NEEDS_FACT_CHECK"}).means == SignalLabel.GENERAL_FACT


def test_an_order_goes_before_a_label() -> None:
    values = {"x-vsr-fact-check-needed": "true", "x-memory-intent": "search"}
    assert read_upstream(values).means == "search"


def test_names_are_configurable_and_nothing_else_is_read() -> None:
    rules = (UpstreamRule("x-intent", ("lookup",), SignalLabel.TOOL), UpstreamRule("x-any", (), "skip"))
    assert names_of(rules) == {"x-intent", "x-any"}
    assert read_upstream({"x-intent": "Lookup", "x-memory-intent": "search"}, rules).means == SignalLabel.TOOL
    assert read_upstream({"x-any": "whatever"}, rules).means == "skip"
    assert "x-memory-intent" in names_of(DEFAULT_RULES)


def test_a_rule_cannot_mean_what_nobody_knows() -> None:
    with pytest.raises(AssertionError, match="means must be one of"):
        UpstreamRule("x", (), "maybe")
