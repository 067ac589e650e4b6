"""Plain statements that no two of which are about the same thing: each becomes one memory, whoever reads them."""

from __future__ import annotations

SUBJECTS = (
    "bicycle, harp, kayak, violin, tent, drone, loom, telescope, piano, canoe, anvil, kiln, sextant, "
    "lathe, easel, typewriter, gramophone, barometer, hammock, toboggan, wheelbarrow, chandelier, "
    "accordion, surfboard, printing press, rocking chair, fishing rod, chess set, stamp album, coin jar, "
    "spare key, raincoat, ladder, generator, beehive, greenhouse, sundial, weather vane, wine rack, tool "
    "chest, sewing machine, coffee grinder, record player, microscope, umbrella stand"
).split(", ")
PLACES = ("in the cellar", "at the lake house", "with my aunt in Porto", "behind the garage", "in storage unit 9")


def kept_thing(number: int) -> str:
    """`number`: below `len(SUBJECTS)`."""
    return f"My {SUBJECTS[number]} is {PLACES[number % len(PLACES)]} since {1950 + number}."
