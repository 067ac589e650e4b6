"""The reference of the metrics, from their declarations."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from memory.runtime.metrics import ANNOUNCED, Metrics
from reference_pages.markdown import code, document, prose
from reference_pages.notes import notes

INTRODUCTION = """All parts share one Prometheus endpoint ([Metrics](../observe.md#metrics)). Counters end in `_total`,
histograms in `_bucket`, `_sum` and `_count` when scraped. Values of labels that are named here are exported from the
start, as 0; those that come from settings are not."""


def page() -> str:
    metrics = Metrics(CollectorRegistry())
    announced = {id(getattr(metrics, name)): values for name, values in ANNOUNCED.items()}
    declared = {metric.describe()[0].name: metric for metric in vars(metrics).values() if hasattr(metric, "describe")}
    said = notes("metrics.md", declared)
    blocks = ["# Metrics reference", INTRODUCTION]
    for name, metric in declared.items():
        family = metric.describe()[0]
        labels = tuple(metric._labelnames)
        facts = f"A {family.type}{', by ' if labels else ''}{' and '.join(map(code, labels))}."
        known = ", ".join(code(" ".join(values)) for values in announced.get(id(metric), ()))
        shown = f"From the start: {known}." if known else ""
        blocks += [f"## {code(name)}", f"{prose(family.documentation)} {facts}", shown, said.get(name, "")]
    return document(*blocks)
