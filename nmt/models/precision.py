"""Which numbers stay wide where autocast makes products in bfloat16 or float16."""

import torch
from torch import Tensor


def wide(x: Tensor) -> Tensor:
    """float32 from a half type; float32 and float64 as they are. For states, scores and softmax."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
