"""Write docs/features.md, the features of memrt beside other libraries, from features.toml.

Usage: python tests/features/features.py [--write]

No library checks such a table: site generators print any text, without its tests and sources.

Without --write, the check fails if features.toml names a missing test or guide page, if a peer has
no answer or no source, or if the page differs from features.toml.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest requires tomli
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "tests/features/features.toml"
PAGE = "docs/features.md"
LINES_MAX = 250
COMMAND = "python tests/features/features.py --write"

ANSWERS = ("yes", "partly", "no", "does not apply")
SILENT = "not documented"
SHORT = {"does not apply": "n/a"}
KEYS = {"text", "memrt", "guide", "tests", SILENT, *ANSWERS}
INTRO = """\
Each row is a feature. The text leads to the page of the guide, and [the list of tests](#tests) has
the tests that prove the feature in memrt. The answer for another library links to the documentation
that supports the answer:

- *partly*: the title of the link names the documented part.
- *n/a*: the feature does not apply to the library.
- A dash: not documented. The library may have the feature, and the table makes no claim.

The documentation was read at these versions:

"""


def load(root: Path) -> dict:
    """Return the contents of features.toml."""
    return tomllib.loads((root / SOURCE).read_text(encoding="utf-8"))


def rows(data: dict) -> list[dict]:
    """Return all features in the order of the page."""
    return [feature for theme in data["theme"] for feature in theme["feature"]]


def has_test(root: Path, name: str) -> bool:
    """Return True if the file of a name such as `c/test_x.c::case` defines the test."""
    file, _, test = name.partition("::")
    path = root / "tests" / file
    if not path.is_file() or not test:
        return False
    before = r"\w*TEST\w*\(" if path.suffix == ".c" else r"\s*(?:async )?def "
    return bool(re.search(rf"^{before}{test}\b", path.read_text(encoding="utf-8"), re.MULTILINE))


def source(peer: dict, answer: str | list[str]) -> tuple[str, str]:
    """Return address and reason of an answer. The address is empty for an unknown page."""
    where, reason = (answer, "") if isinstance(answer, str) else answer
    page, mark, anchor = where.partition("#")
    address = peer["pages"].get(page, "")
    return (f"{address}{mark}{anchor}" if address else ""), reason


def judge_answers(feature: dict, peers: dict) -> Iterator[str]:
    """Yield the faults in the answers for the peers."""
    given = [name for answer in ANSWERS for name in feature.get(answer, {})]
    given += feature.get(SILENT, [])
    for name in sorted({*given, *peers}):
        if name not in peers:
            yield f"peer must be a table of the file, got {name}"
        elif given.count(name) != 1:
            yield f"{name} must have 1 answer, got {given.count(name)}"
    for answer in ANSWERS:
        for name, value in feature.get(answer, {}).items():
            address, reason = source(peers.get(name, {"pages": {}}), value)
            if name in peers and not address:
                yield f"source of {name} must be a page of the peer, got {value}"
            if bool(reason) != (answer == "partly"):
                yield f"{name}: only partly must have a reason, got {answer} and {reason!r}"


def judge(root: Path, feature: dict, peers: dict) -> Iterator[str]:
    """Yield the faults of one feature."""
    for key in sorted(feature.keys() - KEYS):
        yield f"key must be known, got {key}"
    if feature.get("memrt") not in ("yes", "partly", "no"):
        yield f"memrt must be yes, partly or no, got {feature.get('memrt')}"
    tests, guide = feature.get("tests", []), feature.get("guide")
    if feature.get("memrt") == "no":
        if tests:
            yield "a feature without an implementation must have no tests"
    elif not tests or not guide:
        yield "a feature of memrt must have tests and a guide page"
    for name in tests:
        if not has_test(root, name):
            yield f"test must exist, got {name}"
    if guide and not (root / "docs" / f"{guide}.md").is_file():
        yield f"guide page must exist, got {guide}"
    yield from judge_answers(feature, peers)


def violations(root: Path, data: dict) -> list[str]:
    """Return a sentence for each fault of the file."""
    found = [
        f"{SOURCE}: {feature['text']}: {fault}"
        for feature in rows(data)
        for fault in judge(root, feature, data["peers"])
    ]
    used = {
        (name, (value if isinstance(value, str) else value[0]).partition("#")[0])
        for feature in rows(data)
        for answer in ANSWERS
        for name, value in feature.get(answer, {}).items()
    }
    for name, peer in data["peers"].items():
        unused = [page for page in peer["pages"] if (name, page) not in used]
        found += [f"{SOURCE}: page {page} of {name} is never named" for page in unused]
    return found


def cell(feature: dict, name: str, peer: dict) -> str:
    """Return the answer for one peer as Markdown."""
    for answer in ANSWERS:
        if name in feature.get(answer, {}):
            address, reason = source(peer, feature[answer][name])
            title = f' "{reason}"' if reason else ""
            return f"[{SHORT.get(answer, answer)}]({address}{title})"
    return "-"


def page_text(data: dict) -> str:
    """Return docs/features.md."""
    peers, number = data["peers"], 0
    tests = []
    text = f"# Features\n\nWritten by `{COMMAND}` from `features.toml`; do not edit.\n\n{INTRO}"
    text += "".join(
        f"- **{peer['name']}**, {peer['kind']}: {peer['read']}.\n" for peer in peers.values()
    )
    for theme in data["theme"]:
        text += f"\n## {theme['name']}\n\n"
        text += f"| | feature | memrt | {' | '.join(peer['name'] for peer in peers.values())} |\n"
        text += f"|---|---|{'---|' * (1 + len(peers))}\n"
        for feature in theme["feature"]:
            number += 1
            guide = feature.get("guide")
            shown = f"[{feature['text']}]({guide}.md)" if guide else feature["text"]
            cells = [cell(feature, name, peer) for name, peer in peers.items()]
            text += f"| {number} | {shown} | {feature['memrt']} | {' | '.join(cells)} |\n"
            if feature.get("tests"):
                names = ", ".join(f"`{name}`" for name in feature["tests"])
                tests.append(f"- **{number}**: {names}\n")
    return f"{text}\n## Tests\n\nFiles are below the folder `tests`.\n\n{''.join(tests)}"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the page")
    write = parser.parse_args(arguments).write
    data, page = load(root), root / PAGE
    found, text = violations(root, data), page_text(data)
    if (lines := text.count("\n")) > LINES_MAX:
        found.append(f"{PAGE}: at most {LINES_MAX} lines, got {lines}: remove rows")
    if write and not found:
        page.write_text(text, encoding="utf-8")
    elif not page.exists() or page.read_text(encoding="utf-8") != text:
        found.append(f"{PAGE} differs from {SOURCE}: run {COMMAND}")
    print("\n".join([*found, f"features: {len(rows(data))} rows, {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
