"""The identity and scope of a request."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from memory.errors import BadInput

ID_BYTES_MAX = 256  # of any user, project, session or agent id, in UTF-8; Milvus fields are declared with it
PROJECT_OWNER_PREFIX = " project/"  # begins with white space, which no valid id does


def is_valid_id(value: str) -> bool:
    """Whether `value` may be the id of a user, project, session or agent.

    1 to 256 bytes of UTF-8, no control, format or surrogate characters, no white space at either end. Ids are compared
    exactly: nothing is trimmed, folded or normalised, so ids that look alike remain different.
    """
    if not value or len(value) > ID_BYTES_MAX:  # first: a client may send megabytes
        return False
    if value[0].isspace() or value[-1].isspace():
        return False
    if value.isascii() and value.isprintable():  # nearly all: ids are checked wherever a memory is read
        return True
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs") for character in value):
        return False
    return len(value.encode()) <= ID_BYTES_MAX


def is_project_owner(value: str) -> bool:
    """Whether `value` stands for a shared project in the place of a user's id. Never true of a valid id."""
    if not value.startswith(PROJECT_OWNER_PREFIX) or len(value.encode("utf-8", "surrogatepass")) > ID_BYTES_MAX:
        return False
    return is_valid_id(value.removeprefix(PROJECT_OWNER_PREFIX))


def is_valid_owner(value: str) -> bool:
    """Whether memories may belong to `value`: the id of a user, or what stands for a shared project."""
    return is_valid_id(value) or is_project_owner(value)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memories are used. `user_id` and `project_id` limit what is visible; the others only affect ranking."""

    user_id: str
    project_id: str = ""
    session_id: str = ""
    agent_id: str = ""

    def __post_init__(self) -> None:
        if not is_valid_id(self.user_id):
            raise BadInput("user_id must be 1-256 bytes of UTF-8 without control characters or white space at an edge")
        for name in ("project_id", "session_id", "agent_id"):
            value = getattr(self, name)
            if value and not is_valid_id(value):
                raise BadInput(f"{name} must be empty or follow the rules of user_id")


class ProjectScope(Scope):
    """The scope of a shared project's memories; made from a project, never from a request.

    `user_id` is the project's owner id, and `project_id` the audience that is searched for.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        assert is_project_owner(self.user_id), "the scope of a user"
