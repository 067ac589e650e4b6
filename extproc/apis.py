"""The APIs that get memory, by path, with their request and reply formats; and the paths that are only stripped."""

from __future__ import annotations

from dataclasses import dataclass

from extproc.identity import Headers, first_header
from extproc.messages_reply import MESSAGES_REPLIES
from extproc.reply import COMPLETION_REPLIES, ReplyShape
from extproc.responses_reply import RESPONSES_REPLIES
from memory.chat.api_shape import ApiShape
from memory.chat.completions import COMPLETIONS
from memory.chat.messages import MESSAGES
from memory.chat.responses import RESPONSES


@dataclass(frozen=True, slots=True)
class Api:
    requests: ApiShape
    replies: ReplyShape


APIS = (Api(COMPLETIONS, COMPLETION_REPLIES), Api(RESPONSES, RESPONSES_REPLIES), Api(MESSAGES, MESSAGES_REPLIES))
API_BY_PATH = {api.requests.path: api for api in APIS}
STRIPPED_PATHS = frozenset(  # our fields are stripped; they get no memory
    (
        "/v1/completions",
        "/v1/embeddings",
        "/v1/messages/count_tokens",
        "/v1/responses/compact",
        "/v1/responses/input_tokens",
    )
)


def readable_api(headers: Headers) -> Api | None:
    """The API of a chat that we can read; None for anything else."""
    coding = first_header(headers, "content-encoding").strip().lower()
    if first_header(headers, ":method") != "POST" or coding not in ("", "identity"):
        return None
    return API_BY_PATH.get(first_header(headers, ":path").partition("?")[0])
