"""Link code in the text of pages, such as `memrt.live`, to its entry in the reference."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

DOMAINS = ("py", "c")


class LinkCode(SphinxPostTransform):
    """Make a link of each inline literal that is exactly the name of a documented object."""

    default_priority = 5

    def run(self, **options: object) -> None:
        targets = {
            name: (page, anchor)
            for domain in DOMAINS
            for name, _, _, page, anchor, _ in self.env.get_domain(domain).get_objects()
            if name.lower().startswith("memrt")
        }
        here = self.env.current_document.docname
        for literal in list(self.document.findall(nodes.literal)):
            target = targets.get(literal.astext().partition("(")[0])
            if target and target[0] != here and isinstance(literal.parent, nodes.TextElement):
                if isinstance(literal.parent, (nodes.reference, nodes.title)):
                    continue
                link = make_refnode(self.app.builder, here, *target, literal.deepcopy())
                literal.replace_self(link)


def setup(app: Sphinx) -> None:
    app.add_post_transform(LinkCode)
