"""How a chat model is asked to read messages."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class ExtractionSettings(msgspec.Struct, frozen=True, kw_only=True):
    topics: Annotated[tuple[str, ...], "Topics that the model should look for in particular, in a few words each."] = ()
    examples: Annotated[str, "JSON file of your own examples of chats and their claims, shown after ours."] = ""
    priority: Annotated[
        Annotated[int, Meta(ge=-1000, le=1000)] | None,
        "vLLM's `priority` of extraction calls, higher is later; only for a server that is started with "
        "`--scheduling-policy priority`, others refuse it. None: not sent.",
    ] = None
