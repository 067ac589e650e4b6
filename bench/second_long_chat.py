"""A second chat of two hundred turns, written when compaction was done, to see how it does on another one."""

from __future__ import annotations

from long_chats import LongChat, Planted, Topic

CLINIC = Topic(
    (
        "How do I explain triage to a volunteer in simple words?",
        "What should be on the checklist for the evening shift?",
        "Can you suggest a friendlier wording for our waiting room sign?",
        "How do other clinics deal with people who do not turn up?",
        "What is a sensible way to number the consulting rooms?",
        "Should the reception desk face the door?",
    ),
    (
        "Triage means that the most urgent person is seen first, not the one who came first.",
        "A checklist works if it fits on one page and somebody signs it.",
        "People wait more patiently when they know how long it will take.",
        "A reminder on the day before halves the number of missed appointments.",
        "Number the rooms in the order in which a patient walks past them.",
        "A desk that faces the door greets people without a word.",
        "Keep a box with spare masks, pens and forms within reach of both chairs.",
        "Write signs from the height of a seated person.",
    ),
)
NOVEL = Topic(
    (
        "How do I keep a flashback from slowing the chapter down?",
        "Is it a problem if the narrator knows more than she says?",
        "What would a lighthouse keeper eat in winter?",
        "Could you list five verbs for the sea that are not overused?",
        "How long should a first chapter be?",
        "Do readers mind an open ending?",
    ),
    (
        "A flashback holds attention if it answers a question that the reader is already asking.",
        "A narrator may hide things as long as she never lies to the reader's face.",
        "Salted fish, potatoes, hard bread and tea would fill most of the winter.",
        "The sea can heave, gnaw, mutter, slacken or shoulder its way up the rocks.",
        "A first chapter is long enough when the reader wants to know one thing badly.",
        "Open endings work when the main question is closed and only the smaller ones stay open.",
        "Read the dialogue aloud and strike what nobody would say.",
        "Let the weather do something other than mirror the mood.",
    ),
)
CAR = Topic(
    (
        "What does a rattling noise at low speed usually mean?",
        "How often does brake fluid have to be changed?",
        "Is a used electric car a good idea with a short commute?",
        "What do I check before a long drive?",
        "Which tyres make sense if it rarely snows?",
    ),
    (
        "A rattle at low speed is often a loose heat shield, which is cheap to fix.",
        "Brake fluid takes up water and is changed every other year.",
        "A short commute is kind to a battery, and the state of it can be read out before you buy.",
        "Check pressure, oil, washer fluid and lights, and look whether the spare wheel is there at all.",
        "All-season tyres are a fair compromise where snow is rare.",
        "Ask for the service book and call one of the garages in it.",
        "A test drive should include a hill, a rough road and a long stretch of silence.",
    ),
)
SECOND = LongChat(
    "clinic",
    (CLINIC, NOVEL, CAR),
    (
        Planted(
            3,
            "The clinic opens on 9 September, the mayor comes at eleven.",
            "When does the clinic open?",
            ("9 September",),
        ),
        Planted(7, "Sister Agnieszka Wrona runs the evening shift.", "Who runs the evening shift?", ("Wrona",)),
        Planted(
            11,
            "The heroine of my novel is called Ismene Falk and keeps a lighthouse.",
            "What is the heroine of my novel called?",
            ("Ismene",),
        ),
        Planted(
            14,
            "I've decided that the novel is told in the present tense.",
            "In which tense is the novel told?",
            ("present tense",),
        ),
        Planted(
            21,
            "I drive a Skoda Fabia from 2016 with 118,000 kilometres on it.",
            "How many kilometres does my car have?",
            ("118,000",),
        ),
        Planted(
            26, "The garage wants 640 euros for the brakes.", "How much does the garage want for the brakes?", ("640",)
        ),
        Planted(33, "We've chosen the blue forms over the paper cards.", "Which forms did we choose?", ("blue forms",)),
        Planted(
            37,
            "There will be four consulting rooms and one of them is for children.",
            "How many consulting rooms will there be?",
            ("our consulting rooms",),
        ),
        Planted(
            44,
            "My editor Tobias Quandt needs the first three chapters by 30 October.",
            "By when does my editor need the chapters, and what is he called?",
            ("30 October", "Quandt"),
        ),
        Planted(
            52,
            "Your appointment for the inspection has the number TV-55219-B.",
            "What number does the appointment for the inspection have?",
            ("TV-55219-B",),
            is_answer=True,
        ),
        Planted(
            63,
            "The donation from the Lindqvist foundation is 25,000 euros.",
            "How large is the donation from the foundation?",
            ("25,000",),
        ),
        Planted(
            69,
            "No appointments on Wednesdays, we agreed on that.",
            "On which day are there no appointments?",
            ("Wednesday",),
        ),
        Planted(
            76,
            "The lighthouse burns down in chapter 14, I'm sure about that now.",
            "In which chapter does the lighthouse burn down?",
            ("chapter 14",),
        ),
        Planted(
            83,
            "I'll sell the car to my cousin Leontine for 3,800 euros.",
            "To whom do I sell the car, and for how much?",
            ("Leontine", "3,800"),
        ),
        Planted(
            91,
            "The alarm code of the clinic is changed every first Monday by Mr. Devereux.",
            "Who changes the alarm code of the clinic?",
            ("Devereux",),
        ),
        Planted(
            99,
            "We need nine volunteers, six have signed up so far.",
            "How many volunteers have signed up so far?",
            ("six have",),
        ),
        Planted(
            108, "The novel's working title is Saltlight.", "What is the working title of the novel?", ("Saltlight",)
        ),
        Planted(
            116, "I have asthma, so I avoid long drives with the windows down.", "What illness do I have?", ("asthma",)
        ),
        Planted(
            127,
            "The pharmacy in Ostergade delivers at 7:15 every morning.",
            "When does the pharmacy deliver?",
            ("7:15",),
        ),
        Planted(
            139,
            "I'm going with the small publisher, not the big one.",
            "Which publisher am I going with?",
            ("small publisher",),
        ),
        Planted(
            151,
            "The vaccination fridge must stay at 5 degrees, Bogdan checks it.",
            "At how many degrees must the fridge stay, and who checks it?",
            ("5 degrees", "Bogdan"),
        ),
        Planted(
            166,
            "My new car is an electric Renault and arrives in week 43.",
            "When does my new car arrive?",
            ("week 43",),
        ),
        Planted(177, "The antagonist is the harbour master, Captain Rask.", "Who is the antagonist?", ("Rask",)),
        Planted(194, "We close at 19:30 on Fridays.", "When do we close on Fridays?", ("19:30",)),
    ),
)
