#!/usr/bin/python3
"""First program of the guest: mount file systems, run the cases in order, and end the guest.

The first serial port is the console. The second one gets a line for each case that passed.
"""

import ctypes
import os
import subprocess
import sys
import time

CASE_TIMEOUT = 1200  # seconds, under emulation
RESULTS = "/dev/ttyS1"
RESTART = 0x01234567  # QEMU ends instead
MOUNTS = (
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("cgroup2", "/sys/fs/cgroup"),
    ("tmpfs", "/tmp"),
)


def run_case(name: str) -> None:
    """Run a case with the console as output, and report a pass."""
    print(f"guest: {name} begins", flush=True)
    begin = time.monotonic()
    command = [sys.executable, f"/cases/{name}.py"]
    try:
        status = str(subprocess.run(command, timeout=CASE_TIMEOUT).returncode)
    except subprocess.TimeoutExpired:
        status = "a timeout"
    outcome = "passed" if status == "0" else f"FAILED with {status}"
    print(f"guest: {name} {outcome} in {time.monotonic() - begin:.1f} s", flush=True)
    if status == "0":
        with open(RESULTS, "w") as results:
            print(name, file=results)


def main() -> None:
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LANG="C.UTF-8")
    for kind, folder in MOUNTS:
        subprocess.run(["mount", "-t", kind, kind, folder], check=True)
    kernel, up = os.uname().release, time.clock_gettime(time.CLOCK_BOOTTIME)
    print(f"guest: Linux {kernel}, up in {up:.1f} s", flush=True)
    with open("/cases/list") as names:
        for name in names.read().split():
            run_case(name)
    ctypes.CDLL(None).reboot(RESTART)


if __name__ == "__main__":
    main()
