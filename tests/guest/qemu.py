"""The machine of the guest: QEMU with KVM where KVM works, else with emulation (TCG)."""

from __future__ import annotations

import fcntl
import itertools
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from guest_image import Image


@dataclass(frozen=True)
class Machine:
    """Memory of a guest, with options of QEMU and of the kernel."""

    memory: str
    options: tuple[str, ...] = ()
    append: str = ""


def nodes(*sizes: int) -> tuple[str, ...]:
    """Return the options for NUMA nodes of so many MiB. Only the first two have a processor.

    The distances and the speeds of the nodes are in tables of ACPI (SLIT and HMAT).
    """
    options = ["-machine", "hmat=on"]
    for node, size in enumerate(sizes):
        options += ["-object", f"memory-backend-ram,id=ram{node},size={size}M"]
        options += ["-numa", f"node,nodeid={node},memdev=ram{node},initiator={min(node, 1)}"]
    for node in range(2):
        options += ["-numa", f"cpu,node-id={node},socket-id={node}"]
    for near, far in itertools.product(range(2), range(len(sizes))):
        initiator = f"hmat-lb,initiator={near},target={far},hierarchy=memory"
        latency, speed = (10, "8G") if near == far else (20 + far, "4G")
        options += ["-numa", f"{initiator},data-type=access-latency,latency={latency}"]
        options += ["-numa", f"{initiator},data-type=access-bandwidth,bandwidth={speed}"]
    return tuple(options)


MACHINES = {
    "plain": Machine("1536M"),
    "nodes": Machine("4608M", nodes(3584, 768, 256), "hugepagesz=1G hugepages=1"),
    "four nodes": Machine("1536M", nodes(768, 256, 256, 256)),
}
"""Machines by name. A case names its machine in the constant MACHINE; default: plain.

A page of 1 GiB needs so much memory of a node above 4 GiB.
"""
PROBE_TIMEOUT = 15
RUN_TIMEOUT = {"kvm": 900, "tcg": 3600}
"""Seconds for all cases. Emulation is several times slower, and KVM may stop a guest for ever."""
KVM = Path("/dev/kvm")
KVM_CREATE_VM = 0xAE01
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
APPEND = "console=ttyS0 panic=-1 loglevel=3 psi=1 rdinit=/init"


def command(kernel: Path, accelerator: str, *options: str, machine: str = "plain") -> list[str]:
    """Return the command that runs a guest with its console as standard output."""
    processor = "host" if accelerator == "kvm" else "max"
    kind = MACHINES[machine]
    return [
        *("qemu-system-x86_64", "-machine", "q35", "-accel", accelerator, "-cpu", processor),
        *(
            "-smp",
            "2,sockets=2",
            "-m",
            kind.memory,
            "-nodefaults",
            "-no-reboot",
            "-display",
            "none",
        ),
        *("-serial", "stdio", "-kernel", str(kernel), "-append", f"{APPEND} {kind.append}".strip()),
        *kind.options,
        *options,
    ]


def can_create_machine() -> bool:
    """Return whether KVM creates a virtual machine. The check needs neither QEMU nor a kernel."""
    try:
        with KVM.open("r+b", buffering=0) as device:
            os.close(fcntl.ioctl(device, KVM_CREATE_VM, 0))
    except OSError:
        return False
    return True


def probe_kvm(kernel: Path) -> bool:
    """Boot a kernel without a file system under KVM. Returns whether the kernel panics soon.

    Every working kernel panics without a file system. On some machines, KVM creates a machine that
    never starts.
    """
    try:
        done = subprocess.run(
            command(kernel, "kvm"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and b"Kernel panic" in done.stdout


def has_kvm(kernel: Path) -> bool:
    """Return whether KVM works. The answer of a probe stays valid until the machine restarts."""
    if not can_create_machine():
        return False
    answer = kernel.with_name("kvm")
    boot = BOOT_ID.read_text().strip()
    if not answer.exists() or boot not in answer.read_text():
        answer.write_text(f"{'yes' if probe_kvm(kernel) else 'no'} {boot}\n")
    return answer.read_text().startswith("yes")


def passed_cases(results: Path) -> set[str]:
    """Return the cases that passed, from the output of the second serial port."""
    return set(results.read_text().split()) if results.exists() else set()


def run(guest: Image, accelerator: str, initrd: Path, machine: str) -> set[str]:
    """Run a guest with its console on the standard output. Returns the cases that passed."""
    results = initrd.with_name("results")
    files = ("-serial", f"file:{results}", "-initrd", str(initrd))
    line = command(guest.kernel, accelerator, *files, machine=machine)
    try:
        subprocess.run(
            line, stdin=subprocess.DEVNULL, timeout=RUN_TIMEOUT[accelerator], check=False
        )
    except subprocess.TimeoutExpired:
        print(f"the guest did not end within {RUN_TIMEOUT[accelerator]} s")
    return passed_cases(results)
