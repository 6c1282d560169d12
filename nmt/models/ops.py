"""Operations that every model uses: precision under autocast, and dropout."""

import torch
from torch import Tensor
from torch.nn import functional as F


def upcast(x: Tensor) -> Tensor:
    """bfloat16 and float16 to float32; float32 and float64 unchanged. For states, scores and softmax."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def autocast_dtype(x: Tensor) -> torch.dtype:
    """The dtype of matrix products with x under the current autocast state."""
    device_type = x.device.type
    return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else x.dtype


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Zeros a share `rate` of x and scales the rest by 1 / (1 - rate)      arXiv:1207.0580.

    On a CPU the library draws one number for each element, up to a fifth of a Transformer's update; here one
    64-bit draw serves four elements (the rate is met to 1/65536), which halves forward and backward.
    """
    if not training or rate == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    draws = torch.randint(-(2**63), 2**63 - 1, ((x.numel() + 3) // 4,)).view(torch.int16)[: x.numel()]
    keep = draws.view(x.shape) >= round(rate * 2**16) - 2**15
    return x * keep.to(x.dtype).mul_(1 / (1 - rate))
