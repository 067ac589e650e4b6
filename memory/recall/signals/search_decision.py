"""Signals: decides whether a request needs memory: signals of filters ahead, then rules, then a classifier.

`decide_early` needs no embedding and handles the clear cases: a tool result, a greeting, a mention of the user.
`decide_late` handles the rest with the embedding of the query, which a search needs anyway. A missed search loses an
answer and an unnecessary one costs milliseconds, so we search when in doubt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memory.language import bare_reply, is_asked
from memory.language.small_talk import is_pleasantry
from memory.model import Conversation, Role, Vector
from memory.recall.query import is_vague
from memory.recall.signals import cues
from memory.recall.signals.classifier import SignalClassifier, SignalLabel
from memory.recall.signals.upstream import NO_SIGNALS, SEARCH, SKIP, UpstreamSignals

# Threshold of the classifier's score, 0..1. A missed search counts twice, which puts the ideal threshold at a third; in
# five-fold cross-validation on the phrases, this value had the lowest weighted error.
SEARCH_SCORE_MIN = 0.42
JUDGED_CHARACTERS_MAX = 400  # longer messages are always searched: classifying them would cost more than it could save
QUESTIONS_BEFORE_MAX = 2  # earlier user messages that a follow-up may refer to


@dataclass(frozen=True, slots=True)
class Decision:
    search: bool
    reason: str  # a short label for metrics and receipts
    label: SignalLabel | None = None  # the kind of message, where known
    scores: Mapping[str, float] = field(default_factory=dict)  # the classifier's, if it was used


ABOUT_A_WHOLE = Decision(search=True, reason="about_the_user", label=SignalLabel.PERSONAL)


def decide(
    conversation: Conversation,
    *,
    upstream: UpstreamSignals = NO_SIGNALS,
    vector: Vector | None = None,
    classifier: SignalClassifier | None = None,
) -> Decision:
    """Both steps. `vector` is the embedding of the query, shape `(dimension,)`."""
    early = decide_early(conversation, upstream=upstream)
    return early if early is not None else decide_late(conversation, vector=vector, classifier=classifier)


def decide_early(conversation: Conversation, *, upstream: UpstreamSignals = NO_SIGNALS) -> Decision | None:
    """The decisions that need no embedding; None leaves the decision to `decide_late`."""
    if conversation.messages[-1].role == Role.TOOL:
        return Decision(search=False, reason="tool_result", label=SignalLabel.TOOL)
    text = conversation.last_user_text()
    if not text or text.isspace():
        return Decision(search=False, reason="no_question")
    if upstream.means in (SEARCH, SKIP):
        return Decision(search=upstream.means == SEARCH, reason=f"upstream_{upstream.means}")
    if len(text) > JUDGED_CHARACTERS_MAX:
        return Decision(search=True, reason="long_message", label=SignalLabel.TASK)
    if is_pleasantry(text):
        return _pleasantry(text, conversation)
    return _by_words(cues.without_mentions(text), conversation, upstream)


def _by_words(spoken: str, conversation: Conversation, upstream: UpstreamSignals) -> Decision | None:
    """By priority: tool commands, mentions of the user, then signals of filters ahead."""
    if upstream.means == SignalLabel.TOOL or cues.is_tool_command(spoken):
        return Decision(search=False, reason="tool", label=SignalLabel.TOOL)
    if cues.refers_to_user(spoken):
        return Decision(search=True, reason="about_the_user", label=SignalLabel.PERSONAL)
    if _continues_something_personal(spoken, conversation):
        return Decision(search=True, reason="follow_up", label=SignalLabel.PERSONAL)
    if upstream.means:
        label = SignalLabel(upstream.means)
        return Decision(search=label.wants_memory, reason=label, label=label)
    return None


def decide_late(conversation: Conversation, *, vector: Vector | None, classifier: SignalClassifier | None) -> Decision:
    """By words and embedding; search while there is no classifier yet."""
    if classifier is None:
        return Decision(search=True, reason="question")
    scores = classifier.scores(_text_to_judge(conversation), vector)
    evidence = sum(score for label, score in scores.items() if label.wants_memory)
    search = evidence >= SEARCH_SCORE_MIN
    label = max((label for label in SignalLabel if label.wants_memory == search), key=scores.__getitem__)
    shown = {str(label): score for label, score in scores.items()} | {"search": evidence}
    return Decision(search, reason=label, label=label, scores={name: round(score, 3) for name, score in shown.items()})


def _speaks_of_the_user(text: str) -> bool:
    spoken = cues.without_mentions(text)
    return cues.refers_to_user(spoken) and not cues.is_tool_command(spoken)


def _pleasantry(text: str, conversation: Conversation) -> Decision:
    """ "Yes, please" after "Shall I write it?" is a task, not an acknowledgement."""
    if is_asked(_assistant_before(conversation)) and bare_reply(text) == "yes":
        return Decision(search=True, reason="consent", label=SignalLabel.TASK)
    return Decision(search=False, reason="greeting", label=SignalLabel.GREETING)


def _continues_something_personal(spoken: str, conversation: Conversation) -> bool:
    """A message that names no topic, where the conversation before it is about the user."""
    return is_vague(spoken) and any(map(_speaks_of_the_user, _user_texts(conversation)[:-1]))


def _text_to_judge(conversation: Conversation) -> str:
    """The last user message; with the one before it if it names no topic."""
    texts = _user_texts(conversation)
    return " ".join(texts[-2:]) if is_vague(texts[-1]) else texts[-1]


def _user_texts(conversation: Conversation) -> list[str]:
    """The last user messages with content, shortened, oldest first; at most `QUESTIONS_BEFORE_MAX` earlier ones."""
    texts: list[str] = []
    for message in reversed(conversation.messages):
        if message.role == Role.USER and (text := cues.shortened(message.content)).strip():
            texts.append(text)
            if len(texts) > QUESTIONS_BEFORE_MAX:
                break
    return texts[::-1]


def _assistant_before(conversation: Conversation) -> str:
    """The assistant's message right before the last user message, shortened; "" if there is none."""
    is_before = False
    for message in reversed(conversation.messages):
        if is_before and (text := cues.shortened(message.content)).strip():
            return text if message.role == Role.ASSISTANT else ""
        is_before = is_before or message.role == Role.USER
    return ""
