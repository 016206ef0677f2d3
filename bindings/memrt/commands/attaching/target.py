"""Check that memrt can attach to a process. Errors name the reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from memrt.commands.attaching.symbols import find_symbols
from memrt.commands.output.errors import CommandError

NEEDED = ("Py_AddPendingCall", "PyRun_SimpleString")


class Target(NamedTuple):
    """Process that runs Python."""

    pid: int
    user: int
    group: int
    symbols: dict[str, int]
    """Addresses of the functions NEEDED."""

    @property
    def runs(self) -> bool:
        """Whether the process still runs."""
        return _status(self.pid).get("State", "X")[0] not in "XZ"


def target_of(pid: int) -> Target:
    """Return the process to attach to.

    Raises
    ------
    CommandError
        memrt cannot attach to the process.
    """
    status = _status(pid)
    user, group = (int(status.get(name, "0 0").split()[1]) for name in ("Uid", "Gid"))
    why = _why_not(pid, status, user)
    symbols: dict[str, int] = {}
    if not why:
        try:
            symbols = find_symbols(pid, NEEDED)
            why = "" if symbols else "does not run Python, or not on x86-64"
        except OSError as error:
            why = refusal(error)
    if why:
        raise CommandError(f"process {pid} {why}")
    return Target(pid, user, group, symbols)


def _status(pid: int) -> dict[str, str]:
    """Return the fields of /proc/PID/status; an empty result without such a process."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def _why_not(pid: int, status: dict[str, str], user: int) -> str:
    """Return a clause with the reason why memrt cannot attach; empty if memrt can."""
    if not status or status["State"][0] in "XZ":
        return "does not run"
    if pid == os.getpid():
        return "is this command"
    if status["Tgid"] != str(pid):
        return f"is a thread: use process {status['Tgid']}"
    if user != os.geteuid() and os.geteuid() != 0:
        return f"belongs to user {user}: run the command as this user or as root"
    if status["TracerPid"] != "0":
        return f"is traced by process {status['TracerPid']}: only one tracer is possible"
    if status["State"][0] in "Tt":
        return "is stopped: let it continue with SIGCONT"
    try:
        if os.stat(f"/proc/{pid}/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino:
            return "runs in another container: run the command there"
    except OSError as error:
        return refusal(error)
    return ""


def refusal(error: OSError) -> str:
    """Return a clause with the reason of a system call's failure, and the remedy."""
    if isinstance(error, ProcessLookupError | FileNotFoundError):
        return "has ended"
    if isinstance(error, PermissionError):
        return f"may not be traced{_scope()}: run the command as root, or with CAP_SYS_PTRACE"
    return f"could not be traced: {error.strerror}"


def _scope() -> str:
    """Return the setting of the kernel that forbids tracing, as an addition to a sentence."""
    try:
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text(encoding="ascii").strip()
    except OSError:
        return ""
    return "" if scope == "0" else f" (kernel.yama.ptrace_scope is {scope})"
