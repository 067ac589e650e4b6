"""Signals: what filters ahead of us found out about a request, from headers and Envoy metadata.

Values arrive as strings by name: a header's name in lower case, or `NAMESPACE:KEY` of dynamic metadata. The caller must
pass only values that the edge vouches for: with a header that clients can set, they could control their own search.
Only configured names are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.recall.signals.classifier import SignalLabel

SEARCH = "search"
SKIP = "skip"
MEANINGS = (*tuple(SignalLabel), SEARCH, SKIP)


@dataclass(frozen=True, slots=True)
class UpstreamRule:
    """If the value called `name` holds one of `values` (an empty tuple: any), the request is what `means` says.

    A value may be a comma-separated list; case and white space are ignored. `means`: a `SignalLabel`, which the user's
    own words may override, or an order, `search` or `skip`, which overrides our decision where there is one to make.
    """

    name: str
    values: tuple[str, ...]
    means: str  # one of `MEANINGS`


# What clients of vLLM Semantic Router send, and it passes on; and names of our own for any filter. What the router
# finds out about a request (`x-vsr-…`) it tells the client, in the response.
DEFAULT_RULES = (
    UpstreamRule("x-disable-router-memory", ("true",), SKIP),
    *(UpstreamRule("x-memory-intent", (meaning,), meaning) for meaning in MEANINGS),
    *(UpstreamRule("memory.signals:intent", (meaning,), meaning) for meaning in MEANINGS),
)


@dataclass(frozen=True, slots=True)
class UpstreamSignals:
    """What was said upstream: one of `MEANINGS`, or "" where nothing was. `source` is the name it came from."""

    means: str = ""
    source: str = ""


NO_SIGNALS = UpstreamSignals()


def read_upstream(values: Mapping[str, str], rules: Sequence[UpstreamRule] = DEFAULT_RULES) -> UpstreamSignals:
    """The first rule that matches wins, but `search` and `skip` go before labels."""
    matching = [rule for rule in rules if rule.name in values and _holds(rule, values[rule.name])]
    orders = [rule for rule in matching if rule.means in (SEARCH, SKIP)]
    chosen = next(iter((*orders, *matching)), None)
    return UpstreamSignals(chosen.means, chosen.name) if chosen else NO_SIGNALS


def _holds(rule: UpstreamRule, value: str) -> bool:
    found = {part.strip().casefold() for part in value.split(",")}
    return not rule.values or not found.isdisjoint(rule.values)
