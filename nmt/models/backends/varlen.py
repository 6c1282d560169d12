"""Attention over tokens that lie end to end, without padding, in CUDA's flash kernel."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from nmt.models.backends.sight import Sight, Spans


def attend_varlen(q: Tensor, k: Tensor, v: Tensor, sight: Sight, dropout: float = 0.0) -> tuple[Tensor, None]:
    """softmax(q k' / sqrt(K)) v within each sentence: q is (1, H, N, K), the tokens of all; sight.spans says where.

    Dropout on the weights and a bias are refused at the door.
    """
    assert sight.spans is not None
    q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))  # (N, H, K) each
    return kernel(q, k, v, sight.spans, sight.causal).transpose(0, 1)[None], None


def kernel(q: Tensor, k: Tensor, v: Tensor, spans: Spans, causal: bool) -> Tensor:
    """(N, H, K) three times -> (N, H, K)."""
    from torch.nn.attention.varlen import varlen_attn

    places = (-1, 0) if causal else (-1, -1)  # seen before and after a query's own; -1: all
    return varlen_attn(q, k, v, *spans, window_size=places)  # type: ignore[return-value]


@cache
def why_not(device: torch.device, dtype: torch.dtype, head_size: int) -> str:
    """Why the kernel cannot run there, in words; empty where it can, which is tried on two tokens."""
    if device.type != "cuda":
        return f"it needs a CUDA device, not {device.type}"
    if dtype not in (torch.bfloat16, torch.float16):
        return "it needs 16-bit products: precision=bf16"
    x = torch.zeros(2, 1, head_size, device=device, dtype=dtype)
    starts = torch.tensor([0, 2], device=device, dtype=torch.int32)
    try:
        kernel(x, x, x, Spans(starts, starts, 2, 2), causal=True)
    except (ImportError, RuntimeError, TypeError, ValueError) as error:
        return " ".join(str(error).split("\n")[0].split())
    return ""
