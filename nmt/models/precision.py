"""Which numbers stay wide where autocast makes products in bfloat16 or float16."""

import torch
from torch import Tensor


def wide(x: Tensor) -> Tensor:
    """float32 from a half type; float32 and float64 as they are. For states, scores and softmax."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def product_type(x: Tensor) -> torch.dtype:
    """The type in which products with x are made where autocast is as it is now."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
