"""Sphinx: python -m sphinx -W --keep-going -n docs build/docs (pip install -c constraints.txt -e '.[docs]')."""

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

project = "nmt"
copyright = "the nmt authors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "nmt"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_ambiguous"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
add_module_names = False
# Annotations name classes of torch, numpy and the standard library, whose inventories only the network has, and
# classes of nmt that are no part of the public interface.
nitpick_ignore_regex = [("py:.*", ".*")]


def as_plain_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings of the package are plain text: `code` in backticks, indented lines are formulas."""
    blocks = "\n".join(lines).strip().split("\n\n")
    text = []
    for block in blocks:
        if block.startswith((" ", "\t")):
            text += ["::", "", *(f"    {line}" for line in block.split("\n")), ""]
        else:
            parts = re.split(r"(`+[^`]+`+)", " ".join(block.split()))
            escaped = [
                f"``{part.strip('`')}``" if part.startswith("`") else re.sub(r"([\\*_|<>])", r"\\\1", part)
                for part in parts
            ]
            text += ["".join(escaped), ""]
    lines[:] = text


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", as_plain_text)
