"""Every error that crosses a port, so that callers catch ours and never a library's.

Three kinds: `BadInput` (the caller's: say what was expected, what came, what to do), `Unavailable` (theirs: go on
without, or retry), and `Conflict` (somebody was faster: look again). A broken promise of our own is an `assert`.

Whoever can go on without a part catches `Unavailable` and asks no more. Whoever retries tells two cases apart: plain
`Unavailable` would have met any request, so it is an outage, to be sat out; `Unusable` is about this one request.
`Late` lies between: the part is up and took the request; whoever has another part for the work need not wait.
"""


class MemproxyError(Exception):
    """The root of everything that this project raises on purpose."""


class BadInput(MemproxyError):
    """What came is not what was promised. The message is shown to the caller as it is: no secrets, no content."""

    def __init__(self, message: str, *, code: str = "bad_input") -> None:
        super().__init__(message)
        self.code = code


class NotFound(BadInput):
    """No such thing, or it is somebody else's: the two must look the same."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="not_found")


class NotRecordable(BadInput):
    """A text that could not be looked through for secrets, so that nothing of it may be written."""

    def __init__(self, reason: str) -> None:
        """`reason`: the kind of what went wrong, never a word of the text."""
        super().__init__(
            f"a text could not be looked through for secrets ({reason}): nothing was stored; leave it out, and tell us",
            code="not_recordable",
        )


class BadSetting(BadInput):
    """A setting that stops the start. The message says what was expected, what came, and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="bad_setting")


class Unavailable(MemproxyError):
    """A part that we need (`part`: milvus, embedder, turn_log, model) is down, slow or full. Retrying may help."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part} is unavailable: {reason}")
        self.part = part


class Busy(Unavailable):
    """A part that is well but has more to do than it can in time. Whoever comes now goes on without, and is counted."""


class Late(Unavailable):
    """A part is up and took the request, but did not answer it in the time it had."""


class Unusable(Unavailable):
    """A part is up and took this request, or refused this very one, but gave no answer that can be used.

    Asking again may help a few times; waiting does not, and other requests may well be answered.
    """


class Conflict(MemproxyError):
    """A lease or a lock is no longer ours: stop, somebody else goes on."""
