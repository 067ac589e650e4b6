"""What filters ahead of us say: which names are read, and how headers and metadata become one value."""

from __future__ import annotations

import pytest

from extproc.upstream_signals import SignalReader, signal_reader
from memory.recall.signals.upstream import DEFAULT_RULES, MEANINGS, NO_SIGNALS, UpstreamSignals
from memory.settings import UpstreamSignal

RULES = (
    UpstreamSignal(name="X-Topic", values=("Weather ", "sports"), means="general_fact"),
    UpstreamSignal(name="x-anything", means="skip"),
    UpstreamSignal(name="Router.Out:class:Name", values=("personal",), means="personal"),
    UpstreamSignal(name="Router.Out:is_tool", values=("true",), means="tool"),
)
READER = signal_reader(RULES)


def test_the_setting_takes_every_meaning_that_recall_knows() -> None:
    reader = signal_reader([UpstreamSignal(name="x", values=(one,), means=str(one)) for one in MEANINGS])  # type: ignore[arg-type]
    assert [reader.read_signals([("x", str(one).encode())], {}).means for one in MEANINGS] == list(MEANINGS)


def test_without_a_setting_the_built_in_rules_hold_and_an_empty_one_hears_nobody() -> None:
    assert signal_reader(None).rules == DEFAULT_RULES
    assert "x-memory-intent" in signal_reader(None).headers
    assert signal_reader(None).namespaces == ("memory.signals",)
    deaf = signal_reader(())
    assert (deaf.headers, deaf.namespaces) == ((), ())
    assert deaf.read_signals([("x-memory-intent", b"skip")], {"memory.signals": {"intent": "skip"}}) == NO_SIGNALS


def test_names_are_taken_apart_into_headers_and_namespaces() -> None:
    assert READER.headers == ("x-anything", "x-topic")
    assert READER.namespaces == ("Router.Out",)


@pytest.mark.parametrize(
    ("values", "means"),
    [
        ([b"weather"], "general_fact"),
        ([b"WEATHER"], "general_fact"),
        ([b"news, sports"], "general_fact"),
        ([b"news", b"sports"], "general_fact"),
        ([b"news"], ""),
        ([b""], ""),
        ([b"\xff\xfe"], ""),
    ],
)
def test_a_header_is_a_list_of_words_wherever_it_is_cut(values: list[bytes], means: str) -> None:
    assert READER.read_signals([("x-topic", value) for value in values], {}).means == means


def test_a_rule_without_values_holds_for_any() -> None:
    assert READER.read_signals([("x-anything", b"7")], {}) == UpstreamSignals("skip", "x-anything")


@pytest.mark.parametrize(
    ("left", "means"),
    [
        ({"class:Name": "personal"}, "personal"),
        ({"class:Name": ["task", "personal", 1.0]}, "personal"),
        ({"is_tool": True}, "tool"),
        ({"is_tool": False}, ""),
        ({"class:Name": {"personal": 1.0}}, ""),
        ({"class:Name": None, "is_tool": 1.0}, ""),
    ],
)
def test_metadata_speaks_as_text_list_or_truth(left: dict[str, object], means: str) -> None:
    assert READER.read_signals([], {"Router.Out": left, "other": {"is_tool": True}}).means == means


def test_no_name_is_read_that_no_rule_names() -> None:
    said = [("x-memory-intent", b"skip"), ("x-disable-router-memory", b"true")]
    assert READER.read_signals(said, {"memory.signals": {"intent": "skip"}}) == NO_SIGNALS
    assert SignalReader().read_signals(said, {}).means == "skip"
