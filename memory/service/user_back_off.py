"""Which users are not tried again yet, because their memories could not be changed: nobody else waits for them.

Work for a user is begun before it is tried, so that any failure, also one that ends the round, counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from memory.ports import Clock

BACK_OFF_SECONDS = 0.2  # doubled at each failure
BACK_OFF_SECONDS_MAX = 5.0
FORGOTTEN_SECONDS = 60.0  # after the pause: a user who still fails is tried again long before


class UserBackOff:
    """Of one periodic task, in memory. Who is not tried again, because others did the work, is dropped in time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}
        self._until: dict[str, float] = {}

    async def work_off(
        self, next_user: Callable[..., Awaitable[str | None]], work: Callable[[str], Awaitable[None]]
    ) -> None:
        """Do the work of all users, whom `next_user` names one by one, `without` those that wait.

        Raises the error of the first user for whom it fails; the next calls leave that user out for a while.
        """
        while user_id := await next_user(without=self.waiting()):
            self.begin(user_id)
            await work(user_id)
            self.succeed(user_id)

    def begin(self, user_id: str) -> None:
        seconds = min(2 * self._seconds.get(user_id, BACK_OFF_SECONDS / 2), BACK_OFF_SECONDS_MAX)
        self._seconds[user_id] = seconds
        self._until[user_id] = self._clock() + seconds

    def succeed(self, user_id: str) -> None:
        self._seconds.pop(user_id, None)
        self._until.pop(user_id, None)

    def waiting(self) -> set[str]:
        now = self._clock()
        for user_id in [one for one, until in self._until.items() if until <= now - FORGOTTEN_SECONDS]:
            self.succeed(user_id)
        return {user_id for user_id, until in self._until.items() if until > now}
