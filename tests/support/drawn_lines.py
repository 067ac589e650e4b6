"""The lines of a picture of recall: of each, its points, in the picture's own coordinates."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

Points = list[tuple[float, float]]
DATA_AREA = "url(#zclip1)"  # lines of the key are cut by other areas


def drawn_lines(document: str) -> list[Points]:
    paths = [element for element in ET.fromstring(document).iter() if element.get("marker-mid")]
    return [_points(path.get("d", "")) for path in paths if path.get("clip-path") == DATA_AREA]


def _points(path: str) -> Points:
    return [(float(x), float(y)) for x, y in re.findall(r"([-0-9.]+),([-0-9.]+)", path)]
