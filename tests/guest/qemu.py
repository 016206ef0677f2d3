"""The machine of the guest: QEMU with KVM where KVM works, else with emulation (TCG)."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

from guest_image import Image

MEMORY = "1536M"
PROBE_TIMEOUT = 15
RUN_TIMEOUT = {"kvm": 900, "tcg": 3600}
"""Seconds for all cases. Emulation is several times slower, and KVM may stop a guest for ever."""
KVM = Path("/dev/kvm")
KVM_CREATE_VM = 0xAE01
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
APPEND = "console=ttyS0 panic=-1 loglevel=3 psi=1 rdinit=/init"


def command(kernel: Path, accelerator: str, *options: str) -> list[str]:
    """Return the command that runs a guest with its console as standard output."""
    processor = "host" if accelerator == "kvm" else "max"
    return [
        *("qemu-system-x86_64", "-machine", "q35", "-accel", accelerator, "-cpu", processor),
        *("-smp", "2", "-m", MEMORY, "-nodefaults", "-no-reboot", "-display", "none"),
        *("-serial", "stdio", "-kernel", str(kernel), "-append", APPEND, *options),
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


def run(guest: Image, accelerator: str, initrd: Path) -> set[str]:
    """Run a guest with its console on the standard output. Returns the cases that passed."""
    results = initrd.with_name("results")
    line = command(guest.kernel, accelerator, "-serial", f"file:{results}", "-initrd", str(initrd))
    try:
        subprocess.run(
            line, stdin=subprocess.DEVNULL, timeout=RUN_TIMEOUT[accelerator], check=False
        )
    except subprocess.TimeoutExpired:
        print(f"the guest did not end within {RUN_TIMEOUT[accelerator]} s")
    return passed_cases(results)
