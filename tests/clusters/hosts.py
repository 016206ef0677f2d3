"""Hosts for a cluster on one machine: network namespaces, or loopback addresses without rights.

Each namespace has a veth pair to a bridge. The bridge is in another namespace, so the network of
the machine stays unchanged. `tc netem` delays packets if the kernel has netem.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

NETEM = ("delay", "5ms", "2ms", "loss", "0.5%")


@dataclass
class Hosts:
    """Hosts by number from 0. `kind` names the form of the hosts in messages."""

    kind: str
    names: Sequence[str]
    notes: list[str] = field(default_factory=list)

    def address(self, host: int) -> str:
        """Return the IP address of a host."""
        return f"10.77.0.{host + 1}" if self.kind == "namespaces" else f"127.0.0.{host + 1}"

    def on(self, host: int, *words: str) -> list[str]:
        """Return a command that runs on a host."""
        if self.kind == "namespaces":
            return ["ip", "netns", "exec", self.names[host], *words]
        return list(words)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def _connect(bridge: str, name: str, number: int) -> None:
    outer, inner = f"p{number}", "eth0"
    _ip("netns", "add", name)
    _ip("-n", bridge, "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
    _ip("-n", bridge, "link", "set", outer, "master", "br0", "up")
    _ip("-n", name, "addr", "add", f"10.77.0.{number + 1}/24", "dev", inner)
    _ip("-n", name, "link", "set", inner, "up")
    _ip("-n", name, "link", "set", "lo", "up")


def _delay(names: Sequence[str]) -> str | None:
    """Delay and lose packets of each host. Return a note if the kernel refuses."""
    for name in names:
        words = ("tc", "qdisc", "add", "dev", "eth0", "root", "netem", *NETEM)
        done = subprocess.run(
            ["ip", "netns", "exec", name, *words], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            return f"no delay and no loss: tc netem: {done.stderr.strip().splitlines()[-1]}"
    return None


@contextlib.contextmanager
def hosts(count: int, loopback: bool = False) -> Iterator[Hosts]:
    """Provide `count` hosts, removed at the end. The notes list missing abilities."""
    if loopback:
        yield Hosts("loopback addresses", [""] * count)
        return
    stem = f"memrt{os.getpid()}"
    bridge, names = f"{stem}b", [f"{stem}h{number}" for number in range(count)]
    try:
        try:
            _ip("netns", "add", bridge)
            _ip("-n", bridge, "link", "add", "br0", "type", "bridge")
            _ip("-n", bridge, "link", "set", "br0", "up")
            for number, name in enumerate(names):
                _connect(bridge, name, number)
            note = _delay(names)
            made = Hosts("namespaces", names, [] if note is None else [note])
        except (OSError, subprocess.CalledProcessError) as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip()
            made = Hosts("loopback addresses", names, [f"no network namespaces: {reason}"])
        yield made
    finally:
        for name in (*names, bridge):
            with contextlib.suppress(OSError):
                subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
