"""Every error that crosses a port, so that callers never catch a library's error.

Three kinds: `BadInput` (the caller's: says what was expected, what came, what to do), `Unavailable` (a part's: continue
without it, or retry), and `Conflict` (somebody else was faster: read again). A violated invariant is an `assert`.

Code that can continue without a part catches `Unavailable`. Code that retries distinguishes: plain `Unavailable` is an
outage that would meet any request, to be waited out; `Unusable` concerns this one request. `Late` lies between: the
part is up and took the request; code that has an alternative need not wait.
"""


class MemproxyError(Exception):
    """Base of all errors that this project raises on purpose."""


class BadInput(MemproxyError):
    """Invalid input. The message is shown to the caller unchanged: no secrets, no content."""

    code = "bad_input"

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code or self.code


class NotFound(BadInput):
    """Does not exist, or belongs to somebody else: the two must look the same."""

    code = "not_found"


class MemoryRefused(BadInput):
    """A memory that a store cannot hold. Nothing was written with it."""

    def __init__(self, message: str, *, memory_id: str, code: str = "") -> None:
        super().__init__(message, code=code)
        self.memory_id = memory_id


class NotRecordable(BadInput):
    """A text that could not be searched for secrets and therefore must not be stored."""

    code = "not_recordable"

    def __init__(self, reason: str) -> None:
        """`reason`: the kind of error, without any of the text."""
        super().__init__(
            f"a text could not be looked through for secrets ({reason}): nothing was stored; leave it out, and tell us"
        )


class BadSetting(BadInput):
    """A setting that prevents the start. The message says what was expected, what came, and what to do."""

    code = "bad_setting"


class Unavailable(MemproxyError):
    """A required part (`part`: milvus, embedder, turn_log, model) is down, slow or overloaded. Retrying may help."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part} is unavailable: {reason}")
        self.part = part


class Busy(Unavailable):
    """A working part has more requests than it can serve in time. The caller continues without it, and is counted."""


class Late(Unavailable):
    """A part is up and took the request, but did not answer in time."""


class Unusable(Unavailable):
    """A part is up and took or refused this request, but gave no usable answer.

    Repeating may help a few times; waiting does not, and other requests may succeed.
    """


class Conflict(MemproxyError):
    """A lease or a lock was lost: stop, somebody else continues."""
