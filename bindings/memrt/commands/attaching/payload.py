"""Source code for the other process: take the request, perform the request, write the answer."""

from __future__ import annotations

_CODE = """
import os

def run(folder):
    import json, sys, _thread
    about = os.lstat(folder)
    if about.st_uid != os.geteuid() or about.st_mode & 0o077:
        return
    try:
        os.rename(folder + "/request", folder + "/taken")
    except OSError:
        return
    interrupted = False
    try:
        with open(folder + "/taken", encoding="ascii") as file:
            request = json.load(file)
        answer = perform(request, folder)
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        answer = {"error": "failed: %s: %s" % (type(error).__name__, error)}
    with open(folder + "/answer.part", "w", encoding="ascii") as file:
        json.dump(answer, file)
    os.rename(folder + "/answer.part", folder + "/answer")
    if interrupted:
        _thread.start_new_thread(interrupt_later, (_thread.interrupt_main,))

def interrupt_later(interrupt):
    import time
    time.sleep(0.05)
    interrupt()

def perform(request, folder):
    import sys
    try:
        import memrt
    except ImportError as error:
        return {"error": "cannot import memrt (%s): install memrt for %s" % (error, sys.executable)}
    if memrt.__version__ != request["version"]:
        return {"error": "has memrt %s, and the command has memrt %s: use the memrt of the process"
                % (memrt.__version__, request["version"])}
    from memrt.commands.attaching.inside import perform
    return perform(request, folder)

try:
    run(FOLDER)
except BaseException:
    pass
"""


def payload(folder: str) -> str:
    """Return the source code for a mailbox folder.

    The code checks the folder first, so the folder of another user has no effect. The code leaves
    no names in ``__main__``, prints nothing and raises nothing. A Ctrl-C during the code reaches
    the program 50 ms later, by a thread, because the code must not raise.
    """
    return _CODE.replace("FOLDER", ascii(folder), 1)


def as_statement(code: str) -> bytes:
    """Return an ASCII statement, with a final zero byte, to run the code with separate names."""
    return f"exec({code!a}, {{'__name__': 'memrt_attach'}})\0".encode("ascii")
