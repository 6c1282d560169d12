"""Every way to compute attention against the one written out."""

import inspect
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck
from torch.testing import assert_close

from nmt.models.backends import tiled
from nmt.models.backends.explicit import attend_explicit
from nmt.models.backends.fused import attend_fused
from nmt.models.backends.linear import attend_linear, attend_linear_explicit
from nmt.models.backends.sight import Attend, Bias, Sight
from nmt.models.backends.tiled import attend_tiled
from nmt.models.backends.window import Window

B, H, K, V = 3, 2, 5, 7  # V numbers in a value
ROUNDING = 1e-12  # what float64 may leave of a gradient that is zero
BLOCK = 3  # of keys, so that few are many
# a way, and the same written out
PAIRS: dict[str, tuple[Attend, Attend]] = {
    "fused": (attend_fused, attend_explicit),
    "tiled": (partial(attend_tiled, block=BLOCK), attend_explicit),
    **{f"window {w}": (Window(w).attend, Window(w).attend_explicit) for w in (1, 2, 4, 30)},
    "linear": (partial(attend_linear, chunk=BLOCK), attend_linear_explicit),
}
BIASED = [name for name in PAIRS if name != "linear"]
WAYS = {name: fast for name, (fast, _) in PAIRS.items()} | {
    "explicit": attend_explicit,
    "window 2 explicit": Window(2).attend_explicit,
    "linear explicit": attend_linear_explicit,
}
each_way = pytest.mark.parametrize("attend", WAYS.values(), ids=WAYS.keys())


def heads(length: int, size: int = K, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(B, H, length, size, dtype=dtype).requires_grad_()


def drawn_bias(queries: int, keys: int, dtype: torch.dtype) -> Bias:
    """Any numbers at all, one for each head, query and key."""
    table = torch.randn(H, queries, keys, dtype=dtype)
    first = keys - queries
    return lambda rows, columns: table[
        :, (rows - first).clamp(max=queries - 1)[..., :, None], columns_in(columns, keys)
    ]


def columns_in(columns: Tensor, keys: int) -> Tensor:
    """Blocks may ask for places outside of the sentence, which they then mask."""
    return columns.clamp(0, keys - 1)[..., None, :]


def gradients(attend: Attend, given: tuple[Tensor, Tensor, Tensor], sight: Sight, upstream: Tensor) -> list[Tensor]:
    return [*torch.autograd.grad(attend(*given, sight, 0.0)[0], given, upstream)]


@pytest.mark.parametrize("name", PAIRS)
@settings(deadline=None, max_examples=20)
@given(
    T=st.integers(1, 13),
    S=st.integers(1, 13),
    causal=st.booleans(),
    lengths=st.none() | st.lists(st.integers(0, 13), min_size=B, max_size=B),
    biased=st.booleans(),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_it_equals_the_written_out_one_forward_and_backward(name, T, S, causal, lengths, biased, dtype):
    fast, plain = PAIRS[name]
    given = heads(T, K, dtype), heads(S, K, dtype), heads(S, V, dtype)
    mask = None if lengths is None else torch.arange(S) < torch.tensor(lengths)[:, None]
    sight = Sight(mask, causal, drawn_bias(T, S, dtype) if biased and name in BIASED else None)
    found, expected = fast(*given, sight, 0.0)[0], plain(*given, sight, 0.0)[0]
    assert found.dtype == dtype
    assert_close(found, expected)
    upstream = torch.randn_like(found)
    for ours, theirs in zip(
        gradients(fast, given, sight, upstream), gradients(plain, given, sight, upstream), strict=True
    ):
        assert_close(ours, theirs)


def test_the_written_out_one_is_softmax_of_the_scaled_products():
    q, k, v = heads(7), heads(11), heads(11, V)
    scores = torch.einsum("bhtk,bhsk->bhts", q, k) / K**0.5
    found, weights = attend_explicit(q, k, v, Sight())
    assert_close(weights, scores.exp() / scores.exp().sum(dim=-1, keepdim=True))
    assert_close(found, torch.einsum("bhts,bhsv->bhtv", weights, v))


def test_the_causal_mask_is_aligned_to_the_bottom_right():
    _, weights = attend_explicit(heads(3), heads(5), heads(5), Sight(causal=True))
    assert torch.equal(weights[0, 0] > 0, torch.ones(3, 5).tril(diagonal=2) > 0)


def test_a_window_is_a_band():
    _, weights = Window(2).attend_explicit(heads(5), heads(5), heads(5), Sight())
    assert torch.equal(weights[0, 0] > 0, torch.ones(5, 5).tril(1).triu(-1) > 0)
    _, weights = Window(2).attend_explicit(heads(5), heads(5), heads(5), Sight(causal=True))
    assert torch.equal(weights[0, 0] > 0, torch.ones(5, 5).tril().triu(-1) > 0)


@each_way
def test_several_queries_after_a_cache_get_what_all_at_once_get(attend):
    q, k, v = heads(11), heads(11), heads(11)
    everything = attend(q, k, v, Sight(causal=True), 0.0)[0]
    for first, end in ((0, 4), (4, 5), (5, 11)):
        later = attend(q[:, :, first:end], k[:, :, :end], v[:, :, :end], Sight(causal=True), 0.0)[0]
        assert_close(later, everything[:, :, first:end])


@each_way
@pytest.mark.parametrize("causal", [False, True])
def test_padding_and_company_change_nothing(attend, causal):
    S, mask = 7, torch.arange(7) < torch.tensor([[7], [4], [2]])
    q, k, v = heads(S), heads(S), heads(S)
    together = attend(q, k, v, Sight(mask, causal), 0.0)[0]
    for row, length in enumerate((7, 4, 2)):
        part = (slice(row, row + 1), slice(None), slice(0, length))
        assert_close(attend(q[part], k[part], v[part], Sight(None, causal), 0.0)[0], together[part])


@each_way
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_row_with_nothing_to_look_at_gives_zeros_and_zero_gradients(attend, causal, dtype):
    q, k, v = heads(7, K, dtype), heads(7, K, dtype), heads(7, K, dtype)
    mask = torch.tensor([[False] * 7, [True] * 7, [False] * 4 + [True] * 3])
    found, weights = attend(q, k, v, Sight(mask, causal), 0.0)
    found.sum().backward()
    assert found[0].eq(0).all()
    assert found.isfinite().all()
    for tensor in (q, k, v):
        assert tensor.grad[0].eq(0).all()
        assert tensor.grad.isfinite().all()
    assert weights is None or weights[0].eq(0).all()


@pytest.mark.parametrize("name", BIASED)
def test_a_row_with_nothing_to_look_at_stays_zero_under_a_bias(name):
    q, k, v = heads(7), heads(7), heads(7)
    mask = torch.tensor([[False] * 7, [True] * 7, [True] * 7])
    found, _ = PAIRS[name][0](q, k, v, Sight(mask, True, drawn_bias(7, 7, torch.float64)), 0.0)
    found.sum().backward()
    assert found[0].eq(0).all()
    assert all(tensor.grad[0].eq(0).all() and tensor.grad.isfinite().all() for tensor in (q, k, v))


@each_way
@pytest.mark.parametrize(("dtype", "error"), [(torch.bfloat16, 0.05), (torch.float16, 0.01), (torch.float32, 1e-5)])
def test_every_type_gives_nearly_the_same_in_its_own_type(attend, dtype, error):
    exact = [heads(13), heads(13), heads(13)]
    rounded = [x.detach().to(dtype).requires_grad_() for x in exact]
    sight = Sight(torch.arange(13) < torch.tensor([[13], [9], [4]]), causal=True)
    expected, found = attend(*exact, sight, 0.0)[0], attend(*rounded, sight, 0.0)[0]
    assert found.dtype == dtype
    assert (found.double() - expected).abs().max() < error * expected.abs().max()
    expected.sum().backward()
    found.sum().backward()
    for ours, theirs in zip(rounded, exact, strict=True):
        assert (ours.grad.double() - theirs.grad).abs().max() <= 2 * error * theirs.grad.abs().max() + ROUNDING


@each_way
def test_autocast_around_it_changes_little(attend):
    q, k, v = heads(13, K, torch.bfloat16), heads(13, K, torch.bfloat16), heads(13, K, torch.bfloat16)

    def both() -> list[Tensor]:
        found = attend(q, k, v, Sight(causal=True), 0.0)[0].float()
        return [found, *torch.autograd.grad(found.sum(), (q, k, v))]

    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = both()
    for ours, theirs in zip(inside, both(), strict=True):
        assert (ours.float() - theirs.float()).abs().max() <= 0.02 * theirs.abs().max()


@pytest.mark.parametrize(
    "attend", [attend_explicit, attend_fused, Window(4).attend], ids=["explicit", "fused", "window"]
)
def test_dropout_on_weights_keeps_the_mean_and_passes_gradients(attend):
    q, k, v = (torch.randn(1, 1, 9, K) for _ in range(3))
    many = [x.expand(4000, H, -1, -1).clone().requires_grad_() for x in (q, k, v)]
    dropped = attend(*many, Sight(causal=True), 0.5)[0]
    plain = attend(q, k, v, Sight(causal=True), 0.0)[0]
    assert not torch.equal(dropped[0], dropped[1])
    assert_close(dropped.mean(dim=(0, 1)), plain[0, 0], rtol=0, atol=0.1)
    dropped.sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in many)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("T", "S"), [(4, 4), (2, 5), (5, 2)])
def test_tiled_passes_a_gradient_check(causal, biased, T, S):
    mask = torch.arange(S) < torch.tensor([[S], [1], [0]])
    sight = Sight(mask, causal, drawn_bias(T, S, torch.float64) if biased else None)
    given = heads(T, 2), heads(S, 2), heads(S, 3)
    assert gradcheck(lambda q, k, v: attend_tiled(q, k, v, sight, block=2)[0], given)


def test_tiled_keeps_no_more_than_its_inputs_its_output_and_a_number_for_each_query():
    q, k, v = heads(31), heads(37), heads(37, V)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        found, _ = attend_tiled(q, k, v, Sight(causal=True), block=BLOCK)
    sizes = sorted(x.numel() for x in kept)
    assert sizes == sorted([q.numel(), k.numel(), v.numel(), found.numel(), B * H * 31])


def test_tiled_is_short_enough_to_read():
    assert len(inspect.getsource(tiled._Tiled).split("\n")) < 120


def test_the_fused_path_on_cpu_keeps_its_kernel_under_a_mask():
    q, k, v = heads(4), heads(7), heads(7)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        attend_fused(q, k, v, Sight(torch.ones(B, 7, dtype=torch.bool)))
    assert "aten::_scaled_dot_product_flash_attention_for_cpu" in {event.name for event in profile.events()}
