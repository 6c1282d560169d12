"""Attention over packed (unpadded) tokens in CUDA's flash kernel."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from nmt.models.backends.masks import AttentionMask, CuSeqlens


def attend_varlen(q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, dropout: float = 0.0) -> tuple[Tensor, None]:
    """softmax(q k' / sqrt(K)) v within each sentence: q is (1, H, N, K), packed as mask.cu_seqlens says.

    Dropout on the weights and a bias are refused when the model is built.
    """
    assert mask.cu_seqlens is not None
    q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))  # (N, H, K) each
    return varlen_kernel(q, k, v, mask.cu_seqlens, mask.causal).transpose(0, 1)[None], None


def varlen_kernel(q: Tensor, k: Tensor, v: Tensor, cu_seqlens: CuSeqlens, causal: bool) -> Tensor:
    """(N, H, K) three times -> (N, H, K)."""
    from torch.nn.attention.varlen import varlen_attn

    window = (-1, 0) if causal else (-1, -1)  # positions before and after the query's own; -1: all
    return varlen_attn(q, k, v, *cu_seqlens, window_size=window)  # type: ignore[return-value]


@cache
def reason_unavailable(device: torch.device, dtype: torch.dtype, head_size: int) -> str:
    """Why the kernel cannot run there; empty where it can, which is tried on two tokens."""
    if device.type != "cuda":
        return f"it needs a CUDA device, not {device.type}"
    if dtype not in (torch.bfloat16, torch.float16):
        return "it needs 16-bit products: precision=bf16"
    x = torch.zeros(2, 1, head_size, device=device, dtype=dtype)
    cu_seqlens = torch.tensor([0, 2], device=device, dtype=torch.int32)
    try:
        varlen_kernel(x, x, x, CuSeqlens(cu_seqlens, cu_seqlens, 2, 2), causal=True)
    except (ImportError, RuntimeError, TypeError, ValueError) as error:
        return " ".join(str(error).split("\n")[0].split())
    return ""
