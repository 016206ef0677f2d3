"""Check that every relative link in the pages has an existing target.

Usage: python tests/checks/links.py [ROOT]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def pages(root: Path) -> list[Path]:
    """Return the Markdown files of the root folder, and below docs and examples."""
    return [
        *sorted(root.glob("*.md")),
        *sorted(root.glob("docs/**/*.md")),
        *sorted(root.glob("examples/**/*.md")),
    ]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page, formed from headings as in common Markdown viewers."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def judge(page: Path, link: str) -> str | None:
    """Return the fault of a link of a page, or None."""
    if re.match(r"[a-z]+:", link):
        return None
    name, _, anchor = link.partition("#")
    target = (page.parent / name) if name else page
    if not target.exists():
        return "has no target"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return "names a missing heading"
    return None


def violations(root: Path) -> list[str]:
    """Return a sentence for each bad link."""
    found = []
    for page in pages(root):
        for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            if wrong := judge(page, link):
                found.append(f"{page.relative_to(root)}: {link} {wrong}")
    return found


def main(argv: list[str]) -> int:
    root = Path(argv[1] if len(argv) > 1 else ".")
    count = len(pages(root))
    if count == 0:
        print(f"no page under {root.resolve()}: give the repository's root", file=sys.stderr)
        return 2
    found = violations(root)
    print("\n".join([*found, f"links: {count} pages, {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
