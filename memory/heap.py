"""What stays in memory for good, as Python's garbage collector sees it.

The collector looks at all that lives, now and then: with what a filter imports and holds, that stops every chat for
50 ms and more. It must never be told of what is soon garbage: what is settled is not looked at again, and goes only
when nothing refers to it any more.
"""

from __future__ import annotations

import gc


def settle() -> None:
    """What is there now stays. Collects first, which takes as long as there is to look at since the last time."""
    gc.collect()
    gc.freeze()


__all__ = ["settle"]
