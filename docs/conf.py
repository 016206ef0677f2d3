"""Settings of the documentation site. `./dev docs` builds the site from the pages of this folder.

The pages below docs/reference are written here, from the installed package and the public headers.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
XML = ROOT / "build" / "docs" / "doxygen"
sys.path.insert(0, str(ROOT / "docs" / "_site"))

import autodoc_hooks
import c_pages
import code_links
import exchange_rules
import memrt
import python_pages

project = "memrt"
author = "the authors of memrt"
release = version = memrt.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "breathe",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_site", "reliability"]
nitpicky = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

default_role = "code"
add_module_names = False
python_maximum_signature_line_length = 88
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
autodoc_member_order = "bysource"
autodoc_docstring_signature = False
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "DTypeLike", "Shape")}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

breathe_projects = {"memrt": str(XML / "xml")}
breathe_default_project = "memrt"
breathe_default_members = ("members", "undoc-members")
breathe_domain_by_extension = {"h": "c"}
breathe_show_include = False
breathe_show_define_initializer = True

html_theme = "pydata_sphinx_theme"
html_title = f"memrt {release}"
html_static_path = ["_site/static"]
html_css_files = ["memrt.css"]
html_sidebars = {name: [] for name in ("index", "benchmarks", "reliability")}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "memrt"},
    "navbar_end": ["version-switcher", "theme-switcher"],
    "navbar_align": "left",
    "switcher": {"json_url": "_static/versions.json", "version_match": release},
    "check_switcher": False,
    "show_version_warning_banner": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "github-light",
    "pygments_dark_style": "github-dark",
    "show_toc_level": 2,
}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.highlight-output):not(.highlight-text) > div.highlight > pre"


def setup(app):
    c_pages.write(ROOT, REFERENCE / "c", XML)
    python_pages.write(REFERENCE / "python")
    exchange_rules.write(REFERENCE / "exchange-rules.md")
    code_links.setup(app)
    autodoc_hooks.setup(app, python_pages.modules())
