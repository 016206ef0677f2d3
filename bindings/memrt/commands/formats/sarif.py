"""Write the findings of a recording as SARIF 2.1.0, for editors and code scanning."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from memrt import __version__
from memrt._profile.recording import Document
from memrt.commands.formats.findings import (
    RULES,
    Line,
    PlacedFinding,
    Rule,
    read_findings,
    relative,
)

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "SRCROOT"


def write(documents: Sequence[Document], file: IO[bytes]) -> None:
    root = os.getcwd()
    run = {
        "tool": {
            "driver": {
                "name": "memrt",
                "semanticVersion": __version__,
                "rules": [_rule(*each) for each in RULES.items()],
            }
        },
        "originalUriBaseIds": {_ROOT: {"uri": Path(root).as_uri().rstrip("/") + "/"}},
        "results": [_result(each, root) for each in read_findings(documents)],
        "columnKind": "unicodeCodePoints",
    }
    text = io.TextIOWrapper(file, "utf-8", errors="replace", write_through=True)
    json.dump({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, text, indent=1)
    text.write("\n")
    text.detach()


def _rule(name: str, rule: Rule) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": rule.about},
        "defaultConfiguration": {"level": rule.level},
    }


def _result(finding: PlacedFinding, root: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": list(RULES).index(finding.rule),
        "level": RULES[finding.rule].level,
        "message": {"text": finding.message},
        "properties": {"bytes": finding.nbytes},
    }
    if finding.calls:
        place, *others = finding.calls
        result["locations"] = [_location(place, root)]
        known = f"{_artifact(place, root)['uri']} {place.function}"
        digest = hashlib.sha256(f"{finding.rule} {known}".encode("utf-8", "replace"))
        result["partialFingerprints"] = {"memrtPlace/v1": digest.hexdigest()[:16]}
        result["relatedLocations"] = [
            {"id": number, **_location(call, root)} for number, call in enumerate(others, 1)
        ]
    return result


def _location(line: Line, root: str) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(line, root)}
    if line.line:
        physical["region"] = {"startLine": line.line}
    return {"physicalLocation": physical, "message": {"text": line.function}}


def _artifact(line: Line, root: str) -> dict[str, str]:
    inside = relative(line.file, root)
    if inside is not None:
        return {"uri": quote(inside, errors="replace"), "uriBaseId": _ROOT}
    if os.path.isabs(line.file):
        return {"uri": "file://" + quote(line.file, errors="replace")}
    return {"uri": quote(line.file, errors="replace")}
