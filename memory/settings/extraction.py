"""How facts are extracted where a `memory_extraction` model is configured."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class ExtractionSettings(msgspec.Struct, frozen=True, kw_only=True):
    strategy: Annotated[
        Literal["auto", "judge", "draft", "verbatim"],
        Meta(
            description="What the model does: `judge` statements that rules propose, `draft` all facts of a window in "
            "one call (7 B or more), nothing (`verbatim`); `auto` drafts if the model's name says 7b or more."
        ),
    ] = "auto"
    questions_max: Annotated[
        Annotated[int, Meta(ge=0, le=1000)],
        Meta(description="Most questions about one window that a judging model is asked; rules decide the rest."),
    ] = 60
    arbitrations_max: Annotated[
        Annotated[int, Meta(ge=0, le=100)],
        Meta(description="Most pairs of a new and an old memory, per window, that a model is asked about. 0: none."),
    ] = 4
    topics: Annotated[
        tuple[str, ...], Meta(description="What the model is told to look for above all, in a few words each.")
    ] = ()
    examples: Annotated[
        str,
        Meta(description='JSON file of your own examples, [{"said", "keep", "before"?}], shown after ours.'),
    ] = ""
    priority: Annotated[
        Annotated[int, Meta(ge=-1000, le=1000)] | None,
        Meta(
            description="vLLM's `priority` of extraction calls, higher is later; only for a server that is started "
            "with `--scheduling-policy priority`, others refuse it. None: not sent."
        ),
    ] = None
