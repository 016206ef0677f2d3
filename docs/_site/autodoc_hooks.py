"""Adapt autodoc to memrt: texts below fields, constructors of results, types of Python."""

from __future__ import annotations

import builtins
import inspect
import sys
from types import ModuleType
from typing import Any

import python_pages
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.nodes import find_pending_xref_condition


def share_field_texts(modules: list[ModuleType]) -> None:
    """Let autodoc find the texts below the fields of classes.

    autodoc searches the module in `__module__`: for memrt the public module, although the source
    is in a private module.
    """
    private = [name for name in sys.modules if name.startswith("memrt.") and "._" in name]
    for module in modules:
        target = ModuleAnalyzer.for_module(module.__name__)
        target.analyze()
        for name in private:
            if not str(getattr(sys.modules[name], "__file__", "")).endswith(".py"):
                continue
            source = ModuleAnalyzer.for_module(name)
            source.analyze()
            public = {c for c in module.__all__ if hasattr(sys.modules[name], c)}
            target.attr_docs |= {k: v for k, v in source.attr_docs.items() if k[0] in public}
            target.tagorder |= {
                k: v for k, v in source.tagorder.items() if k.partition(".")[0] in public
            }


def is_called_by_users(cls: type) -> bool:
    """Return False for classes of mere results, which show no constructor."""
    own = vars(cls)
    if "__dataclass_fields__" in own or "_fields" in own:
        return False
    if isinstance(own.get("__new__"), staticmethod):
        return len(inspect.signature(cls).parameters) > 0
    return "__init__" in own


def hide_constructor(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: Any, returned: Any
) -> tuple[str, None] | None:
    is_result = what == "class" and not is_called_by_users(thing)
    return ("", None) if is_result and signature is not None else None


def drop_groups(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Remove the lists of names from the docstring of a module: the headings show them."""
    if what == "module":
        lines[:] = python_pages.GROUP.sub("", "\n".join(lines)).splitlines()


def read_google_sections(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Convert sections such as `Args:`. numpydoc reads the sections of NumPy's style."""
    if what in {"class", "exception", "function", "method"}:
        settings = Config(napoleon_use_ivar=True)
        lines[:] = GoogleDocstring(lines, settings, app, what, name, thing, options).lines()


def unlink_builtin_types(app: Sphinx, page: nodes.document) -> None:
    """Remove references to types of Python, which could lead to attributes such as `bytes`."""
    for reference in list(page.findall(pending_xref)):
        if reference.get("reftype") == "class" and hasattr(builtins, reference["reftarget"]):
            shown = find_pending_xref_condition(reference, "resolved") or reference
            reference.replace_self(shown.children)


def setup(app: Sphinx, modules: list[ModuleType]) -> None:
    share_field_texts(modules)
    app.connect("autodoc-process-docstring", drop_groups)
    app.connect("autodoc-process-docstring", read_google_sections, priority=400)
    app.connect("autodoc-process-signature", hide_constructor)
    app.connect("doctree-read", unlink_builtin_types)
