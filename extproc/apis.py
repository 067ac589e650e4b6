"""The APIs that get memory, by path: how each writes a request, and how it answers. And those that are only stripped.

A new shape is a line here. This module must never look into a body.
"""

from __future__ import annotations

from dataclasses import dataclass

from extproc.reply import COMPLETION_REPLIES, ReplyShape
from extproc.responses_reply import RESPONSES_REPLIES
from memory.chat.api_shape import ApiShape
from memory.chat.completions import COMPLETIONS
from memory.chat.responses import RESPONSES


@dataclass(frozen=True, slots=True)
class Api:
    """One API, both ways."""

    requests: ApiShape
    replies: ReplyShape


APIS = (Api(COMPLETIONS, COMPLETION_REPLIES), Api(RESPONSES, RESPONSES_REPLIES))
API_BY_PATH = {api.requests.path: api for api in APIS}
STRIPPED_PATHS = ("/v1/completions", "/v1/messages")  # our fields leave their bodies; they get no memory
