"""The states of one user's working set, and what brings it from one to the next.

| state   | what comes                                          | what happens                               | next    |
|---------|-----------------------------------------------------|--------------------------------------------|---------|
| ABSENT  | a request of the user, or a write                   | their snapshot is read                     | OPENING |
| OPENING | it was read                                         | the set is held, as of the snapshot        | HELD    |
| OPENING | there is none that can be used                      | a request: the set waits to be loaded      | WAITING |
| OPENING | there is none that can be used                      | a write: nothing                           | ABSENT  |
| WAITING | its turn has come, and no chat searches the store   | all is read, laid out, held, and saved     | HELD    |
| WAITING | it is too large, or the store is down               | the load ends                              | RESTING |
| RESTING | a request                                           | the store is searched                      | RESTING |
| RESTING | its time is over                                    | nothing                                    | ABSENT  |
| HELD    | the ledger names memories that changed              | they are taken out                         | BEHIND  |
| BEHIND  | they were read again, and nobody wrote meanwhile    | they are put in as they are now            | HELD    |
| BEHIND  | the store is down, or somebody writes all the time  | what is left serves on                     | BEHIND  |
| BEHIND  | the ledger no longer knows what changed, or a fault | the set goes, and its snapshot where stale | ABSENT  |
| BEHIND  | it is too large by now                              | the set and its snapshot go                | RESTING |
| (held)  | other sets need the room                            | the set goes                               | ABSENT  |

While it rests a set that is held serves on. Where a user's set stands is read off what is kept for them
(`WorkingSets.state_of`), never written down beside it.
"""

from __future__ import annotations

from enum import Enum, auto


class SetState(Enum):
    ABSENT = auto()
    OPENING = auto()
    WAITING = auto()
    RESTING = auto()
    HELD = auto()  # as of its revision, which is all that we heard of
    BEHIND = auto()  # without what changed since
