"""The turn log on one Redis server or cluster."""

from __future__ import annotations

from memory.adapters.redis.chains import RedisResponseChains
from memory.adapters.redis.conversation_record import RedisConversationRecord
from memory.adapters.redis.conversation_trees import RedisConversationTrees
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.queue_replica import QueueReplica
from memory.adapters.redis.queue_store import QueueStore
from memory.adapters.redis.record_copies import RedisRecordCopies
from memory.adapters.redis.recorded_messages import RedisRecordedMessages
from memory.adapters.redis.recording_times import RedisRecordingTimes
from memory.adapters.redis.removed_words import RedisRemovedWords
from memory.adapters.redis.turn_log import RedisTurnRecording, RedisWindowLeases
from memory.adapters.redis.turn_order import TurnOrder
from memory.adapters.redis.turn_triage import RedisTurnTriage
from memory.ports import Clock, RemovedWords


class RedisTurnLog(RedisTurnRecording, RedisWindowLeases, RedisTurnTriage, RedisConversationRecord):
    """`memory.ports.TurnLog`. `owners` must be open."""

    def __init__(self, client: LogClient, owners: RedisOwners, *, clock: Clock) -> None:
        store = QueueStore(client)
        replica = QueueReplica(client, store)
        order = TurnOrder()
        RedisTurnRecording.__init__(self, client, store, owners, order, clock=clock)
        RedisWindowLeases.__init__(self, client, store, owners, replica, clock=clock)
        RedisTurnTriage.__init__(self, client, store, replica, clock=clock)
        RedisConversationRecord.__init__(self, client, store)
        self.messages = RedisRecordedMessages(client, store, clock=clock)
        self.copies = RedisRecordCopies(client, store, clock=clock)
        self.trees = RedisConversationTrees(client, store, owners, order, clock=clock)
        self.times = RedisRecordingTimes(client, owners, clock=clock)
        self.chains = RedisResponseChains(client, clock=clock)
        self.removed_words: RemovedWords = RedisRemovedWords(client)
