"""Chats of two hundred turns with names, numbers and decisions planted in them, and the questions that ask for them.

Each question names the strings of which the prompt has to hold every one: checked without a judge. What surrounds them
are messages on several topics with answers of 50 to 200 words, drawn in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

TURNS = 200
SYSTEM = "You are a helpful assistant. Answer in full sentences."


@dataclass(frozen=True, slots=True)
class Planted:
    """`said` in `turn`, counted from 0, or answered there; `needles` must be in the prompt when `question` is asked."""

    turn: int
    said: str
    question: str
    needles: tuple[str, ...]
    is_answer: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """`asked` and `advice` are taken in order, over and over."""

    asked: Sequence[str]
    advice: Sequence[str]


@dataclass(frozen=True, slots=True)
class LongChat:
    name: str
    topics: Sequence[Topic]
    planted: Sequence[Planted] = field(default_factory=tuple)

    def turns(self) -> Iterator[tuple[str, str]]:
        """What the user says and what is answered, two hundred times; a topic holds for ten turns."""
        said = {one.turn: one for one in self.planted if not one.is_answer}
        answered = {one.turn: one for one in self.planted if one.is_answer}
        for turn in range(TURNS):
            topic = self.topics[turn // 10 % len(self.topics)]
            question = topic.asked[turn % len(topic.asked)] if turn not in said else said[turn].said
            length = (3, 5, 4, 9, 3, 6, 4)[turn % 7]
            advice = [topic.advice[(turn * 3 + n) % len(topic.advice)] for n in range(length)]
            if turn in answered:
                advice.insert(1, answered[turn].said)
            yield question, "\n\n".join(advice)

    def messages(self) -> list[dict[str, Any]]:
        """The whole history, with a system message."""
        history: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        for question, answer in self.turns():
            history += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return history


WORKSHOP = Topic(
    (
        "How should I structure the opening session so that people get talking?",
        "What makes a good name badge for an event like that?",
        "Should the coffee break come before or after the second talk?",
        "How do I keep the panel from running over time?",
        "Is it rude to ask speakers for their slides in advance?",
        "Could you draft two sentences that invite people to the evening walk?",
        "What do people usually forget when they plan something like this?",
    ),
    (
        "Start with something that everybody can answer, because silence at the beginning tends to last.",
        "A short round in pairs works better than a long round in the plenum.",
        "Put the practical information on one page and hand it out at the door.",
        "It helps to name one person who watches the clock and is allowed to interrupt.",
        "Breaks are where most of the useful conversations happen, so do not cut them first when time gets tight.",
        "Slides in advance are a normal request, and most speakers are glad to have a fixed date for them.",
        "People forget the signs from the station, the adapter for the projector and a place for wet coats.",
        "If the room is long and narrow, place the chairs along the wide side so that nobody sits far away.",
        "An evening walk needs no programme, only a meeting point and somebody who knows the way back.",
        "Ask for dietary needs in the registration form, since asking later never reaches everybody.",
        "A feedback form with three questions gets answered, one with twelve does not.",
    ),
)
FLAT = Topic(
    (
        "How do I find out whether a wall carries any load?",
        "What should I look at first when I view a flat?",
        "Is it worth sanding an old wooden floor myself?",
        "How loud is a heat pump in practice?",
        "Which order makes sense for painting, floors and furniture?",
        "What belongs into a handover protocol?",
        "Do I have to tell the landlord about a small leak at once?",
    ),
    (
        "Look at the ceilings and the corners first, because damp shows there before it shows anywhere else.",
        "Ask for the bills of the last winters rather than for the estimate in the advertisement.",
        "Sanding is hard work but not difficult, and the rental shops explain the machine.",
        "Paint first, then the floor, and bring in the furniture when the varnish has hardened.",
        "A wall that stands above another wall in the storey below usually carries something.",
        "Report a leak in writing, with a photograph, as soon as you see it.",
        "A protocol lists the meters, the keys, every mark on walls and floors, and is signed by both sides.",
        "Modern units are about as loud as a refrigerator, but the place where they stand matters.",
        "Measure the staircase before you buy a sofa.",
        "Neighbours know more about a house than any document does, so ring at a door or two.",
    ),
)
CODE = Topic(
    (
        "Why does my generator seem to be empty the second time I loop over it?",
        "When would you use a dataclass instead of a dictionary?",
        "How do I write a test for a function that reads the clock?",
        "What is the difference between a process and a thread here?",
        "Can you explain backpressure in two paragraphs?",
        "Is it a bad sign if a function takes eight parameters?",
        "How do I name a branch so that others understand it?",
    ),
    (
        "A generator can be consumed only once, so the second loop finds nothing left.",
        "Turn it into a list if the data is small, or create a new generator for each loop.",
        "A dataclass gives the fields names and types, and the editor can warn you about a misspelt one.",
        "Pass the clock in as an argument, and the test can hand over whatever time it likes.",
        "Threads share memory and are cheap to start, while processes are isolated and survive each other's crashes.",
        "Backpressure means that a slow consumer can tell the producer to wait instead of letting a queue grow.",
        "Many parameters usually mean that some of them belong together and want to be a value of their own.",
        "```python\nvalues = [1, 2, 3]\nfor value in values:\n    print(value)\n```",
        "Name a branch after what changes for the user, not after the file that you touched.",
        "Write the failing test first, since it shows that you have understood the defect.",
    ),
)
GARDEN = Topic(
    (
        "When is the right time to cut back lavender?",
        "My tomatoes have brown spots at the bottom, what is that?",
        "What can I plant in a shady corner?",
        "How often should I turn the compost?",
        "Are coffee grounds good for roses?",
        "How do I keep snails away without poison?",
        "Which herbs survive a winter on the balcony?",
    ),
    (
        "Cut lavender after it has flowered and leave some green, because old wood does not sprout again.",
        "Brown spots at the bottom of tomatoes come from uneven watering, which keeps calcium from arriving.",
        "Ferns, hostas and sweet woodruff are happy where the sun never comes.",
        "Turn the compost when it has cooled down, which is every few weeks in summer.",
        "Coffee grounds are a mild fertiliser, and a thin layer is enough.",
        "Copper tape helps around pots, and a board on the ground collects snails.",
        "Thyme, sage and winter savory survive outside if the pot does not stand in water.",
        "Mulch saves more water than any timer does.",
        "Water in the morning and at the roots, not over the leaves.",
    ),
)

FIRST = LongChat(
    "workshop",
    (WORKSHOP, FLAT, CODE, GARDEN),
    (
        Planted(
            2,
            "We decided to hold the workshop in the Kesselhaus and not in the town hall.",
            "Where did we decide to hold the workshop?",
            ("Kesselhaus",),
        ),
        Planted(
            5,
            "The budget for the workshop is 7,400 euros including catering.",
            "What is the budget for the workshop?",
            ("7,400",),
        ),
        Planted(
            8,
            "My co-organiser is Henrike Vollmer, she looks after the speakers.",
            "Who is my co-organiser for the workshop?",
            ("Henrike Vollmer",),
        ),
        Planted(
            12,
            "I'm viewing a flat in Lindenstraße 48 on 19 March, the rent would be 1,130 euros.",
            "What is the rent of the flat in Lindenstraße?",
            ("1,130",),
        ),
        Planted(
            16,
            "The landlord is called Mr. Brandstätter and only answers by letter.",
            "What is the landlord called?",
            ("Brandstätter",),
        ),
        Planted(
            23,
            "Let's go with PostgreSQL for the registration tool, SQLite won't be enough.",
            "Which database did we choose for the registration tool?",
            ("PostgreSQL",),
        ),
        Planted(
            27,
            "The deadline for the registration tool is 2 May, Farid reviews the code.",
            "When is the deadline for the registration tool, and who reviews it?",
            ("2 May", "Farid"),
        ),
        Planted(
            34,
            "I planted three apple trees last autumn, a Boskoop and two Toparias.",
            "Which apple trees did I plant?",
            ("Boskoop", "Topari"),
        ),
        Planted(
            41,
            "Dr. Nakagawa has agreed to give the keynote, her fee is 950 euros.",
            "Who gives the keynote and what is the fee?",
            ("Nakagawa", "950"),
        ),
        Planted(
            46,
            "Your reservation at the Hotel Adler is confirmed under reference HX-7714-Q.",
            "What is the reference of the hotel reservation?",
            ("HX-7714-Q",),
            is_answer=True,
        ),
        Planted(53, "I have signed the lease, we move in on 1 August.", "When do we move in?", ("1 August",)),
        Planted(
            58, "My sister Ottilie lends us her van for the move.", "Who lends us a van for the move?", ("Ottilie",)
        ),
        Planted(65, "We settled on weekly releases, every Tuesday.", "On which day do we release?", ("Tuesday",)),
        Planted(
            72,
            "I am allergic to wasp stings, so no open fruit bowls at the event please.",
            "What am I allergic to?",
            ("wasp",),
        ),
        Planted(
            84,
            "The workshop will have 63 participants, we close the registration at that number.",
            "How many participants will the workshop have?",
            ("63",),
        ),
        Planted(
            97,
            "The deposit for the flat is 3,390 euros, payable in three parts.",
            "How much is the deposit for the flat?",
            ("3,390",),
        ),
        Planted(
            104,
            "The staging server is called heron and runs on port 8443.",
            "What is the staging server called and on which port does it run?",
            ("heron", "8443"),
        ),
        Planted(
            113,
            "My neighbour Mrs. Achterberg waters the garden while we are away.",
            "Who waters the garden while we are away?",
            ("Achterberg",),
        ),
        Planted(
            126, "Vegetarian catering only, that is final.", "What did we decide about the catering?", ("egetarian",)
        ),
        Planted(
            138,
            "The electrician comes on 11 July at 8:30, his name is Pawlowski.",
            "When does the electrician come, and what is his name?",
            ("11 July", "Pawlowski"),
        ),
        Planted(
            145,
            "We dropped the mobile app, the web page has to do.",
            "What did we decide about the mobile app?",
            ("dropped the mobile app",),
        ),
        Planted(
            157,
            "I want to build a pond of 6 by 4 metres next spring.",
            "How large is the pond that I want to build?",
            ("6 by 4",),
        ),
        Planted(
            168,
            "The train tickets cost 214.80 euros and I have already paid them.",
            "What did the train tickets cost?",
            ("214.80",),
        ),
        Planted(
            181,
            "The key for the Kesselhaus is with the caretaker, Mr. Oyelaran.",
            "Who has the key for the Kesselhaus?",
            ("Oyelaran",),
        ),
        Planted(
            192,
            "We agreed that Farid presents the demo and I do the introduction.",
            "Who presents the demo?",
            ("Farid",),
        ),
    ),
)
