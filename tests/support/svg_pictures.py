"""A picture in SVG as its elements: what it says, where, what it is made of, and the lines of one of recall."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

NAMESPACE = "{http://www.w3.org/2000/svg}"
DRAWN = frozenset({"svg", "title", "g", "rect", "path", "circle", "text"})  # which run, load and link to nothing


@dataclass(frozen=True, slots=True)
class Text:
    """`x`, `y`: where its first line begins, or its middle or its end is."""

    words: str
    x: float
    y: float
    is_bold: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle with a border."""

    x: float
    y: float
    width: float
    height: float

    def holds(self, text: Text) -> bool:
        return self.x <= text.x <= self.x + self.width and self.y <= text.y <= self.y + self.height


def texts_of(document: str) -> list[str]:
    return [text.words for text in Picture(document).texts]


class Picture:
    """Raises `ParseError` for what is no XML."""

    def __init__(self, document: str) -> None:
        self.root = ET.fromstring(document)
        assert self.root.tag == f"{NAMESPACE}svg"

    @property
    def title(self) -> str:
        """What a browser and a screen reader call it: of the first element, which no other may be."""
        first, *others = self._all("title")
        assert (self.root[0], others) == (first, [])
        return first.text or ""

    @property
    def texts(self) -> list[Text]:
        return [
            Text(one.text or "", float(one.get("x", "")), float(one.get("y", "")), one.get("font-weight") == "600")
            for one in self._all("text")
        ]

    @property
    def frames(self) -> list[Frame]:
        """In the order of reading."""
        sizes = ("x", "y", "width", "height")
        found = [Frame(*(float(one.get(name, "")) for name in sizes)) for one in self._all("rect") if one.get("stroke")]
        return sorted(found, key=lambda frame: (frame.y, frame.x))

    @property
    def size(self) -> Frame:
        return Frame(*map(float, self.root.get("viewBox", "").split()))

    @property
    def foreign_parts(self) -> list[str]:
        """Elements that could run or load something, and attributes that refer to something or are scripts."""
        found = [one.tag for one in self.root.iter() if one.tag.removeprefix(NAMESPACE) not in DRAWN]
        named = [(name, value) for one in self.root.iter() for name, value in one.attrib.items()]
        return found + [
            name for name, value in named if name.startswith(("on", "{")) or name == "href" or "url(" in value
        ]

    def _all(self, tag: str) -> Iterator[ET.Element]:
        return self.root.iter(NAMESPACE + tag)


Points = list[tuple[float, float]]
DATA_AREA = "url(#zclip1)"  # lines of the key are cut by other areas


def drawn_lines(document: str) -> list[Points]:
    """Of a picture of recall: the points of each, in the picture's own coordinates."""
    paths = [element for element in ET.fromstring(document).iter() if element.get("marker-mid")]
    return [_points(path.get("d", "")) for path in paths if path.get("clip-path") == DATA_AREA]


def _points(path: str) -> Points:
    return [(float(x), float(y)) for x, y in re.findall(r"([-0-9.]+),([-0-9.]+)", path)]
