"""Tests that cannot end on memrt as they do on NumPy's default, each with its reason."""

EXPECTED = {
    "numpy/_core/tests/test_mem_policy.py::test_thread_locality": (
        "a thread of it expects NumPy's default handler, which memrt.enable() replaces in every "
        "thread that Python starts; pytest reports what the thread raised as a warning"
    ),
}
