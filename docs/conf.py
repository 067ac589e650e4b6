"""The documentation site: Sphinx with MyST, built by `make docs`. Nothing in it is loaded from another host."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from reference_pages import write_pages  # noqa: E402 - the folder is known only now

write_pages(DOCS)

project = "memproxy"
release = version_of("memproxy")
html_title = f"memproxy {release}"
extensions = ["myst_parser"]
exclude_patterns = ["reference_pages", "_site"]

nitpicky = True  # a reference that leads nowhere is an error
myst_heading_anchors = 4  # the anchors of GitHub, so that links work in both places
myst_links_external_new_tab = False

smartquotes = False  # options have two hyphens

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
