"""What :func:`memrt.from_dlpack` does more rarely."""

from __future__ import annotations

import numpy as np

from memrt._arrays import array
from memrt._memrt import Tensor
from memrt._policy import Policy
from memrt.cuda._array import Array, copied, of_tensor


def finish(taken: np.ndarray | Tensor, copy: bool | None, policy: Policy | None) -> object:
    """A copy of what was taken, where one is asked for; an array of a device out of a Tensor."""
    if isinstance(taken, Tensor):
        result: Array = of_tensor(taken)
        return copied(result) if copy else result
    return array(taken, policy=policy)
