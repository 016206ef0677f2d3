"""Workers of joblib and scikit-learn share policy and scope, and report statistics."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

LOKY = """\
import json, os
import memrt, memrt.workers
import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
def work(size):
    array = np.zeros(size)
    return memrt.is_managed(array), memrt.current_scope().path
with memrt.scope("fit"), memrt.workers.share(memrt.Policy(128, "loky")) as shared:
    found = Parallel(n_jobs=2)(delayed(work)(100_000) for _ in range(4))
    get_reusable_executor().shutdown(wait=True)
stats = shared.stats()
print(json.dumps([found, {worker.state for worker in stats.workers} == {"ended"},
                  sum(worker.policies["loky"].total for worker in stats.workers)]))
"""
SKLEARN = """\
import json
import memrt, memrt.workers
import numpy as np
from joblib.externals.loky import get_reusable_executor
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
if __name__ == "__main__":
    points = np.arange(40_000.0).reshape(2000, 20)
    with memrt.scope("fit"), memrt.workers.share() as shared:
        scores = cross_val_score(KNeighborsClassifier(), points, points[:, 0] > 9999, n_jobs=2)
        get_reusable_executor().shutdown(wait=True)
    print(json.dumps([len(scores), shared.stats().scopes["fit"].total > points.nbytes]))
"""


COMMAND = """\
import json
import numpy as np
import memrt
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
def work(size):
    array = np.zeros(size)
    return memrt.is_managed(array), memrt.current_scope().path, memrt.debug.limits()[0].limit
memrt.limit("300 MB")
with memrt.scope("fit"):
    found = Parallel(n_jobs=2)(delayed(work)(100_000) for _ in range(4))
get_reusable_executor().shutdown(wait=True)
print(json.dumps(found))
"""


@pytest.fixture
def program(tmp_path):
    def run(code, *command):
        script = tmp_path / "program.py"
        script.write_text(code)
        output = subprocess.check_output(
            [sys.executable, *command, script], text=True, timeout=120,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )  # fmt: skip
        assert list(tmp_path.glob("memrt-*")) == []
        return json.loads(output)

    return run


def test_joblib_workers_have_policy_and_scope(program):
    found, ended, total = program(LOKY)
    assert found == [[True, ["fit"]]] * 4
    assert ended
    assert total >= 4 * 800_000


def test_scikit_learn_workers_allocate_in_the_scope(program):
    assert program(SKLEARN) == [5, True]


def test_command_shares_limit_and_scope_with_joblib(program, tmp_path):
    command = ("-m", "memrt", "run", "--workers", "--quiet", "--json", tmp_path / "out")
    assert program(COMMAND, *command) == [[True, ["fit"], 300_000_000]] * 4
    workers = json.loads((tmp_path / "out").read_text())["workers"]
    assert workers["scopes"]["fit"]["total"] >= 4 * 800_000
