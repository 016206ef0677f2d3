"""Tests whose outcome on memrt must differ from NumPy's default, each with a reason."""

EXPECTED = {
    "numpy/_core/tests/test_mem_policy.py::test_thread_locality": (
        "the test expects NumPy's default handler in a new thread, but memrt.enable() replaces the "
        "handler in every thread that Python starts; pytest reports the exception of the thread as "
        "a warning"
    ),
}
