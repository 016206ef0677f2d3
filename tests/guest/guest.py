"""Run tests of real systems in a virtual machine: `./dev guest`.

    ./dev guest              list the cases
    ./dev guest groups kill  run some cases
    ./dev guest --all        run all cases

A case is a Python program of tests/guest/cases, which runs as root in a small Debian system with
Python, NumPy and the installed memrt, without network. An exit status of 0 is a pass. QEMU uses KVM
where KVM works, and else emulates the processor. The first call makes the system as root, in about
2 minutes, in build/systems and build/guest.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "systems"))

import guest_image
import qemu

NO_KVM = "skipped: KVM does not work here: ./dev full runs the cases under emulation"


def case_names() -> list[str]:
    return sorted(path.stem for path in guest_image.CASES.glob("*.py"))


def summary(name: str) -> str:
    """Return the first line of the docstring of a case."""
    tree = ast.parse((guest_image.CASES / f"{name}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def machine_of(name: str) -> str:
    """Return the machine that a case names in its constant MACHINE."""
    tree = ast.parse((guest_image.CASES / f"{name}.py").read_text(encoding="utf-8"))
    for statement in tree.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id="MACHINE")], value=ast.Constant(value=str(machine))
            ):
                return machine
    return "plain"


def by_machine(cases: list[str]) -> dict[str, list[str]]:
    """Return cases by their machines, in order."""
    groups: dict[str, list[str]] = {}
    for case in cases:
        groups.setdefault(machine_of(case), []).append(case)
    return groups


def list_cases() -> None:
    for name in case_names():
        print(f"{name:12} {summary(name)}")


def run_cases(cases: list[str], accelerator: str, guest: guest_image.Image) -> bool:
    """Run cases and print the result. Returns whether all cases passed.

    Cases with the same machine share a guest.
    """
    begin = time.monotonic()
    passed: set[str] = set()
    for machine, group in by_machine(cases).items():
        with tempfile.TemporaryDirectory(dir=guest_image.GUEST) as folder:
            initrd = Path(folder) / "run.cpio"
            guest_image.write_run(guest, group, initrd)
            print(f"→ starting the guest under {accelerator}: {machine}", flush=True)
            passed |= qemu.run(guest, accelerator, initrd, machine)
    failed = [case for case in cases if case not in passed]
    print(f"{len(cases) - len(failed)} passed in {time.monotonic() - begin:.0f} s")
    if failed:
        print(f"FAILED: {' '.join(failed)}")
    return not failed


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev guest",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="case to run")
    parser.add_argument("--all", action="store_true", help="run all cases")
    parser.add_argument("--tcg", action="store_true", help="emulate the processor, without KVM")
    parser.add_argument("--kvm", action="store_true", help="run nothing where KVM does not work")
    options = parser.parse_args()
    cases = case_names() if options.all else options.cases
    if unknown := set(cases) - set(case_names()):
        parser.error(f"CASE must be one of {', '.join(case_names())}, got {sorted(unknown)[0]}")
    if not cases:
        list_cases()
        return 0
    if options.kvm and not qemu.can_create_machine():
        print(NO_KVM)
        return 0
    guest = guest_image.make()
    has_kvm = not options.tcg and qemu.has_kvm(guest.kernel)
    if options.kvm and not has_kvm:
        print(NO_KVM)
        return 0
    return 0 if run_cases(cases, "kvm" if has_kvm else "tcg", guest) else 1


if __name__ == "__main__":
    sys.exit(main())
