"""Functions of memrt._memrt refuse wrong arguments, as tools may call them from outside."""

import memrt
import pytest
from memrt import _memrt


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("pressure_setup", ([],), TypeError),
        ("pressure_add", ("token", 1), TypeError),
        ("pressure_add", (64, 1), ValueError),
        ("pressure_add", (0, 9), ValueError),
        ("pressure_remove", (None, 0), TypeError),
        ("pressure_remove", (64, 0), ValueError),
        ("limit_set", (), TypeError),
        ("limit_set", (None, "many"), TypeError),
        ("limit_set", (object(), None), TypeError),
        ("limit_set_soft", (None, -1), ValueError),
        ("limit_read", (object(),), TypeError),
        ("volatile_new", ("many",), TypeError),
        ("volatile_pin", (None,), ValueError),
        ("volatile_made", (None,), ValueError),
        ("volatile_drop", (None,), ValueError),
        ("volatile_read", (None,), ValueError),
    ],
)
def test_wrong_arguments_raise_and_change_nothing(name, arguments, error):
    memrt.on_pressure(len).close()  # sets up the table of callbacks
    before = _memrt.limit_read(None)
    with pytest.raises(error):
        getattr(_memrt, name)(*arguments)
    assert _memrt.limit_read(None)[0] == before[0]
