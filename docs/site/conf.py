"""How Sphinx builds the site. Copied to the folder of generated pages by scripts/make_site.py."""

import warnings

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from unspur.version import __version__

project = "unspur"
author = "The unspur authors"
copyright = author
version = release = __version__
root_doc = "index"
smartquotes = False  # they would turn --json into a dash
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_design", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}

myst_enable_extensions = ["dollarmath", "attrs_inline", "colon_fence"]
myst_dmath_double_inline = True
myst_fence_as_directive = ["math"]  # ```math is what people read in the repository, too
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = "unspur"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it fetches every page that was found, which a browser forbids for files
html_sidebars = {"start": [], "questions": []}
html_context = {"default_mode": "auto"}  # day or night as the reader's system has it
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_prev_next": False,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
    "logo": {"text": "unspur"},
    "secondary_sidebar_items": ["page-toc"],
}
copybutton_exclude = ".linenos, .gp, .go"

warnings.simplefilter("ignore")


def _mathml(self: HTML5Translator, node: nodes.Element, display: str) -> None:
    """A formula as MathML, which browsers draw by themselves: no script, no font, no network."""
    formula = convert(node.astext(), display=display)
    self.body.append(f'<div class="math">{formula}</div>' if display == "block" else formula)
    raise nodes.SkipNode


def _bars(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings write |x| for a size, which reStructuredText takes for the name of something else."""
    example = False
    for number, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.strip().startswith(">>>"))
        if not example:  # every second part between double backticks is code
            parts = line.split("``")
            lines[number] = "``".join(
                part if place % 2 else part.replace("|", "\\|") for place, part in enumerate(parts)
            )


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _bars)
    app.add_html_math_renderer(
        "mathml",
        (lambda self, node: _mathml(self, node, "inline"), None),
        (lambda self, node: _mathml(self, node, "block"), None),
    )


html_math_renderer = "mathml"
