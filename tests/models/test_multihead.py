"""The fused path against the written-out one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from nmt.models.multihead import CrossAttention, SelfAttention, attend, attend_explicit, merge, split

B, H, K = 2, 3, 5


def heads(length: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(B, H, length, K, dtype=dtype, requires_grad=True)


@settings(deadline=None, max_examples=25)
@given(
    T=st.integers(1, 9),
    S=st.integers(1, 9),
    causal=st.booleans(),
    padded=st.booleans(),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_fused_equals_written_out_forward_and_backward(T, S, causal, padded, dtype):
    S = T if causal else S
    q, k, v = heads(T, dtype), heads(S, dtype), heads(S, dtype)
    mask = torch.arange(S) < torch.tensor([[S], [max(1, S // 2)]])
    asked = (q, k, v, mask if padded and not causal else None, causal, 0.0)
    fused, none = attend(*asked)
    explicit, weights = attend_explicit(*asked)
    assert none is None
    assert weights.shape == (B, H, T, S)
    assert_close(fused, explicit)
    upstream = torch.randn_like(fused)
    for ours, theirs in zip(
        torch.autograd.grad(fused, (q, k, v), upstream),
        torch.autograd.grad(explicit, (q, k, v), upstream),
        strict=True,
    ):
        assert_close(ours, theirs)


@pytest.mark.parametrize("path", [attend, attend_explicit])
def test_a_row_with_no_key_gives_zeros_and_zero_gradients(path):
    q, k, v = heads(4, torch.float32), heads(7, torch.float32), heads(7, torch.float32)
    mask = torch.tensor([[False] * 7, [True] * 7])
    out, _ = path(q, k, v, mask, False, 0.0)
    out.sum().backward()
    assert out[0].eq(0).all()
    for tensor in (q, k, v):
        assert tensor.grad[0].eq(0).all()
        assert tensor.grad[1].isfinite().all()


def test_the_fused_path_on_cpu_keeps_its_kernel_under_a_mask():
    q, k, v = heads(4, torch.float32), heads(7, torch.float32), heads(7, torch.float32)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        attend(q, k, v, torch.ones(B, 7, dtype=torch.bool), False, 0.0)
    assert "aten::_scaled_dot_product_flash_attention_for_cpu" in {event.name for event in profile.events()}


def test_merge_undoes_split():
    x = torch.randn(B, 7, H * K)
    assert torch.equal(merge(split(x, 1, H)[0]), x)


def test_self_attention_is_the_librarys_with_the_same_weights():
    ours = SelfAttention(H * K, H, dropout=0.0)
    theirs = torch.nn.MultiheadAttention(H * K, H, batch_first=True)
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.qkv.weight,
            "in_proj_bias": ours.qkv.bias,
            "out_proj.weight": ours.out.weight,
            "out_proj.bias": ours.out.bias,
        }
    )
    x, mask = torch.randn(B, 7, H * K), torch.arange(7) < torch.tensor([[7], [4]])
    assert_close(ours(x, mask, False, attend), theirs(x, x, x, key_padding_mask=~mask)[0])


def test_heads_cost_the_parameters_of_one_full_width_head():
    def count(heads: int) -> int:
        parts = (SelfAttention(24, heads, 0.0), CrossAttention(24, heads, 0.0))
        return sum(parameter.numel() for part in parts for parameter in part.parameters())

    assert count(1) == count(8)
