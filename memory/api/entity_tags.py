"""Entity tags of memories (RFC 9110): `ETag`, `If-Match` and `If-None-Match`.

A tag is the version of the memory in quotes, and strong: representations with the same tag are the same, byte for byte,
on the same release.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, cast

from litestar import Response
from litestar.datastructures import ResponseHeader
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import HeaderParameter

from memory.api.memory_views import MemoryView, memory_view
from memory.errors import BadInput
from memory.model import Memory
from memory.model.versions import version_of

ANY = "*"
TAGS_MAX = 100  # of one header

IfMatch: TypeAlias = Annotated[
    str | None,
    HeaderParameter(
        name="If-Match",
        description="ETags, or `*`. The call is refused with 412 unless the memory has one of them when it is written.",
    ),
]
IfNoneMatch: TypeAlias = Annotated[
    str | None,
    HeaderParameter(name="If-None-Match", description="ETags, or `*`. 304 without a body if the memory has one."),
]
NOT_MODIFIED = {304: ResponseSpec(None, False, "It has one of the ETags of `If-None-Match`.")}
ETAG_HEADER = ResponseHeader(
    name="ETag", documentation_only=True, value="", description="Changes whenever anything of the memory does."
)


def tag_of(memory: Memory) -> str:
    return f'"{version_of(memory)}"'


def shown(memory: Memory) -> Response[MemoryView]:
    """The memory with its tag."""
    return Response(memory_view(memory), headers={"etag": tag_of(memory)})


def shown_unless_known(memory: Memory, if_none_match: str | None) -> Response[MemoryView]:
    """The memory, or 304 if the caller has it in this version."""
    known = None if if_none_match is None else _tags("If-None-Match", if_none_match)
    if known is None or not (ANY in known or tag_of(memory) in {tag.removeprefix("W/") for tag in known}):
        return shown(memory)
    return cast(Response[MemoryView], Response(None, status_code=304, headers={"etag": tag_of(memory)}))


def expected_versions(if_match: str | None) -> frozenset[str] | None:
    """The versions that the caller allows; None for any. Weak tags match none. Raises `BadInput`."""
    tags = [ANY] if if_match is None else _tags("If-Match", if_match)
    return None if ANY in tags else frozenset(tag[1:-1] for tag in tags if not tag.startswith("W/"))


def _tags(header: str, value: str) -> list[str]:
    """The tags of a header, with their quotes. Ours contain no commas, so that a foreign tag with one matches none."""
    tags = [tag.strip(" \t") for tag in value.split(",")]
    quoted = [tag.removeprefix("W/") for tag in tags]
    is_list = all(len(tag) >= 2 and tag[0] == tag[-1] == '"' and '"' not in tag[1:-1] for tag in quoted)
    if len(tags) > TAGS_MAX or not (tags == [ANY] or is_list):
        raise BadInput(
            f'{header} must be * or at most {TAGS_MAX} ETags in quotes, such as "0123abcd"; send one you got'
        )
    return tags
