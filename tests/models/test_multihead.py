"""Multi-head attention: projections, heads, and the cache."""

import pytest
import torch
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from nmt.models.backends.explicit import attend_explicit
from nmt.models.backends.masks import AttentionMask
from nmt.models.backends.packing import PositionIds
from nmt.models.backends.sdpa import attend_sdpa
from nmt.models.multihead import AttentionCall, CrossAttention, KeysValues, SelfAttention, merge_heads, split_heads
from nmt.models.positions import Rotate, make_positions

B, H, K = 2, 3, 5


def no_rotation(x: torch.Tensor) -> torch.Tensor:
    return x


def test_merge_heads_undoes_split_heads():
    x = torch.randn(B, 7, H * K)
    assert torch.equal(merge_heads(split_heads(x, 1, H)[0]), x)


def test_self_attention_equals_the_librarys_with_the_same_weights():
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
    assert_close(
        ours(x, AttentionCall(attend_sdpa, AttentionMask(mask)), no_rotation)[0],
        theirs(x, x, x, key_padding_mask=~mask)[0],
    )


@pytest.mark.parametrize("positions", ["none", "rotary", "alibi"])
def test_pieces_after_a_cache_get_what_all_at_once_get(positions):
    attention, kind = SelfAttention(H * 2, H, dropout=0.0).double(), make_positions(positions, H * 2, H, 1)
    x = torch.randn(B, 11, H * 2, dtype=torch.float64)
    call = AttentionCall(attend_sdpa, AttentionMask(causal=True, bias=kind.bias()))

    def rotary(first: int, end: int) -> Rotate:
        return kind.rotary(PositionIds.range(first, end, x.device))

    cache: KeysValues = split_heads(x[:, :0].repeat(1, 1, 2), 2, H)  # type: ignore[assignment]
    outputs = []
    for first, end in ((0, 3), (3, 4), (4, 11)):
        output, cache = attention(x[:, first:end], call, rotary(first, end), cache)
        outputs.append(output)
    assert_close(torch.cat(outputs, dim=1), attention(x, call, rotary(0, 11))[0])


def test_heads_have_the_parameters_of_one_full_width_head():
    def count(heads: int) -> int:
        parts = (SelfAttention(24, heads, 0.0), CrossAttention(24, heads, 0.0))
        return sum(parameter.numel() for part in parts for parameter in part.parameters())

    assert count(1) == count(8)


@pytest.mark.parametrize("attend", [attend_explicit, attend_sdpa])
def test_heads_cost_the_arithmetic_of_one_full_width_head(attend):
    def count(heads: int) -> int:
        attention, cross = SelfAttention(24, heads, 0.0), CrossAttention(24, heads, 0.0)
        x = torch.randn(B, 7, 24)
        with FlopCounterMode(display=False) as counter:
            attention(x, AttentionCall(attend, AttentionMask()), no_rotation)[0].sum().backward()
            cross(x, cross.keys_values(x), AttentionCall(attend, AttentionMask()))[0].sum().backward()
        return counter.get_total_flops()

    assert count(1) == count(8) > 0


def test_a_dot_product_of_heads_has_variance_d_k_and_1_after_scaling():
    for d_k in (16, 64, 256):
        q, k = torch.randn(2, 1024, d_k)
        products = q @ k.mT
        assert products.var().item() == pytest.approx(d_k, rel=0.05)
        assert (q * d_k**-0.5 @ k.mT).var().item() == pytest.approx(1.0, rel=0.05)
        # and so for softmax: explicit attention's weights are those of scores with variance 1
        _, weights = attend_explicit(q[None, None], k[None, None], k[None, None], AttentionMask())
        assert weights.log().var(dim=-1).mean().item() == pytest.approx(1.0, rel=0.05)
