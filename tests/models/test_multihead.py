"""The products around attention."""

import pytest
import torch
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from nmt.models.backends.explicit import attend_explicit
from nmt.models.backends.fused import attend_fused
from nmt.models.backends.sight import Sight
from nmt.models.multihead import CrossAttention, KeysValues, Look, SelfAttention, merge, split
from nmt.models.positions import Turn
from nmt.models.transformer import Places, make_positions

B, H, K = 2, 3, 5


def as_it_is(x: torch.Tensor) -> torch.Tensor:
    return x


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
    assert_close(ours(x, Look(attend_fused, Sight(mask)), as_it_is), theirs(x, x, x, key_padding_mask=~mask)[0])


@pytest.mark.parametrize("positions", ["none", "rotary", "alibi"])
def test_several_pieces_at_once_after_a_cache_get_what_all_together_get(positions):
    attention, kind = SelfAttention(H * 2, H, dropout=0.0).double(), make_positions(positions, H * 2, H, 1)
    x, look = torch.randn(B, 11, H * 2, dtype=torch.float64), Look(attend_fused, Sight(causal=True, bias=kind.bias()))

    def turner(first: int, end: int) -> Turn:
        return kind.turner(Places.between(first, end, x.device))

    past: KeysValues = split(x[:, :0].repeat(1, 1, 2), 2, H)  # type: ignore[assignment]
    found = []
    for first, end in ((0, 3), (3, 4), (4, 11)):
        step, past = attention.step(x[:, first:end], past, look, turner(first, end))
        found.append(step)
    assert_close(torch.cat(found, dim=1), attention(x, look, turner(0, 11)))


def test_heads_cost_the_parameters_of_one_full_width_head():
    def count(heads: int) -> int:
        parts = (SelfAttention(24, heads, 0.0), CrossAttention(24, heads, 0.0))
        return sum(parameter.numel() for part in parts for parameter in part.parameters())

    assert count(1) == count(8)


@pytest.mark.parametrize("attend", [attend_explicit, attend_fused])
def test_heads_cost_the_arithmetic_of_one_full_width_head(attend):
    def count(heads: int) -> int:
        attention, cross = SelfAttention(24, heads, 0.0), CrossAttention(24, heads, 0.0)
        x = torch.randn(B, 7, 24)
        with FlopCounterMode(display=False) as counter:
            (attention(x, Look(attend, Sight()), as_it_is).sum()).backward()
            cross(x, cross.keys_values(x), Look(attend, Sight()))[0].sum().backward()
        return counter.get_total_flops()

    assert count(1) == count(8) > 0


def test_a_dot_product_of_heads_has_variance_d_k_and_1_after_scaling():
    for d_k in (16, 64, 256):
        q, k = torch.randn(2, 1024, d_k)
        products = q @ k.mT
        assert products.var().item() == pytest.approx(d_k, rel=0.05)
        assert (q * d_k**-0.5 @ k.mT).var().item() == pytest.approx(1.0, rel=0.05)
        # what softmax gets of it: explicit attention's weights are those of scores with variance 1
        _, weights = attend_explicit(q[None, None], k[None, None], k[None, None], Sight())
        assert weights.log().var(dim=-1).mean().item() == pytest.approx(1.0, rel=0.05)
