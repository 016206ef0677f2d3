"""Finish the rarer cases of :func:`memrt.from_dlpack`: copies, and arrays on a device."""

from __future__ import annotations

import numpy as np

from memrt._arrays.creation import array
from memrt._memrt import Tensor
from memrt._policy.policy import Policy
from memrt.cuda._array import Array
from memrt.cuda._creation import copied
from memrt.cuda._import import of_tensor


def finish(taken: np.ndarray | Tensor, copy: bool | None, policy: Policy | None) -> object:
    """Return a device array for a Tensor, copied if `copy` is true, or a copy of a host array."""
    if isinstance(taken, Tensor):
        result: Array = of_tensor(taken)
        return copied(result) if copy else result
    return array(taken, policy=policy)
