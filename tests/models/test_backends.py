"""Every attention kernel against the explicit one."""

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
from nmt.models.backends.linear import attend_linear, attend_linear_explicit
from nmt.models.backends.masks import Attend, AttentionMask, Bias
from nmt.models.backends.sdpa import attend_sdpa
from nmt.models.backends.tiled import attend_tiled
from nmt.models.backends.window import SlidingWindow

B, H, K, V = 3, 2, 5, 7  # V size of a value
ROUNDING = 1e-12  # what float64 may leave of a gradient that is zero
BLOCK = 3  # keys: short sequences have several blocks
# a kernel, and the explicit one that it is tested against
PAIRS: dict[str, tuple[Attend, Attend]] = {
    "fused": (attend_sdpa, attend_explicit),
    "tiled": (partial(attend_tiled, block=BLOCK), attend_explicit),
    **{f"window {w}": (SlidingWindow(w).attend, SlidingWindow(w).attend_explicit) for w in (1, 2, 4, 30)},
    "linear": (partial(attend_linear, chunk=BLOCK), attend_linear_explicit),
}
BIASED = [name for name in PAIRS if name != "linear"]
KERNELS = {name: kernel for name, (kernel, _) in PAIRS.items()} | {
    "explicit": attend_explicit,
    "window 2 explicit": SlidingWindow(2).attend_explicit,
    "linear explicit": attend_linear_explicit,
}
each_kernel = pytest.mark.parametrize("attend", KERNELS.values(), ids=KERNELS.keys())


def heads(length: int, size: int = K, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(B, H, length, size, dtype=dtype).requires_grad_()


def random_bias(queries: int, keys: int, dtype: torch.dtype) -> Bias:
    """A random number for each head, query and key."""
    table = torch.randn(H, queries, keys, dtype=dtype)
    first = keys - queries
    return lambda rows, columns: table[
        :, (rows - first).clamp(max=queries - 1)[..., :, None], columns_in(columns, keys)
    ]


def columns_in(columns: Tensor, keys: int) -> Tensor:
    """Blocks may ask for positions outside the sentence, which they then mask."""
    return columns.clamp(0, keys - 1)[..., None, :]


def gradients(
    attend: Attend, qkv: tuple[Tensor, Tensor, Tensor], mask: AttentionMask, upstream: Tensor
) -> list[Tensor]:
    return [*torch.autograd.grad(attend(*qkv, mask, 0.0)[0], qkv, upstream)]


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
def test_it_equals_the_explicit_kernel_forward_and_backward(name, T, S, causal, lengths, biased, dtype):
    kernel, explicit = PAIRS[name]
    qkv = heads(T, K, dtype), heads(S, K, dtype), heads(S, V, dtype)
    key_mask = None if lengths is None else torch.arange(S) < torch.tensor(lengths)[:, None]
    mask = AttentionMask(key_mask, causal, random_bias(T, S, dtype) if biased and name in BIASED else None)
    output, expected = kernel(*qkv, mask, 0.0)[0], explicit(*qkv, mask, 0.0)[0]
    assert output.dtype == dtype
    assert_close(output, expected)
    upstream = torch.randn_like(output)
    for grad, expected in zip(
        gradients(kernel, qkv, mask, upstream), gradients(explicit, qkv, mask, upstream), strict=True
    ):
        assert_close(grad, expected)


def test_explicit_attention_is_a_softmax_of_scaled_products():
    q, k, v = heads(7), heads(11), heads(11, V)
    scores = torch.einsum("bhtk,bhsk->bhts", q, k) / K**0.5
    output, weights = attend_explicit(q, k, v, AttentionMask())
    assert_close(weights, scores.exp() / scores.exp().sum(dim=-1, keepdim=True))
    assert_close(output, torch.einsum("bhts,bhsv->bhtv", weights, v))


def test_the_causal_mask_is_aligned_to_the_bottom_right():
    _, weights = attend_explicit(heads(3), heads(5), heads(5), AttentionMask(causal=True))
    assert torch.equal(weights[0, 0] > 0, torch.ones(3, 5).tril(diagonal=2) > 0)


def test_a_window_is_a_band():
    _, weights = SlidingWindow(2).attend_explicit(heads(5), heads(5), heads(5), AttentionMask())
    assert torch.equal(weights[0, 0] > 0, torch.ones(5, 5).tril(1).triu(-1) > 0)
    _, weights = SlidingWindow(2).attend_explicit(heads(5), heads(5), heads(5), AttentionMask(causal=True))
    assert torch.equal(weights[0, 0] > 0, torch.ones(5, 5).tril().triu(-1) > 0)


@each_kernel
def test_queries_after_a_cache_get_what_all_at_once_get(attend):
    q, k, v = heads(11), heads(11), heads(11)
    all_at_once = attend(q, k, v, AttentionMask(causal=True), 0.0)[0]
    for first, end in ((0, 4), (4, 5), (5, 11)):
        later = attend(q[:, :, first:end], k[:, :, :end], v[:, :, :end], AttentionMask(causal=True), 0.0)[0]
        assert_close(later, all_at_once[:, :, first:end])


@each_kernel
@pytest.mark.parametrize("causal", [False, True])
def test_padding_and_the_rest_of_the_batch_change_nothing(attend, causal):
    S, mask = 7, torch.arange(7) < torch.tensor([[7], [4], [2]])
    q, k, v = heads(S), heads(S), heads(S)
    together = attend(q, k, v, AttentionMask(mask, causal), 0.0)[0]
    for row, length in enumerate((7, 4, 2)):
        part = (slice(row, row + 1), slice(None), slice(0, length))
        assert_close(attend(q[part], k[part], v[part], AttentionMask(None, causal), 0.0)[0], together[part])


@each_kernel
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_row_without_any_key_gives_zeros_and_zero_gradients(attend, causal, dtype):
    q, k, v = heads(7, K, dtype), heads(7, K, dtype), heads(7, K, dtype)
    mask = torch.tensor([[False] * 7, [True] * 7, [False] * 4 + [True] * 3])
    output, weights = attend(q, k, v, AttentionMask(mask, causal), 0.0)
    output.sum().backward()
    assert output[0].eq(0).all()
    assert output.isfinite().all()
    for tensor in (q, k, v):
        assert tensor.grad[0].eq(0).all()
        assert tensor.grad.isfinite().all()
    assert weights is None or weights[0].eq(0).all()


@pytest.mark.parametrize("name", BIASED)
def test_a_row_without_any_key_stays_zero_under_a_bias(name):
    q, k, v = heads(7), heads(7), heads(7)
    mask = torch.tensor([[False] * 7, [True] * 7, [True] * 7])
    output, _ = PAIRS[name][0](q, k, v, AttentionMask(mask, True, random_bias(7, 7, torch.float64)), 0.0)
    output.sum().backward()
    assert output[0].eq(0).all()
    assert all(tensor.grad[0].eq(0).all() and tensor.grad.isfinite().all() for tensor in (q, k, v))


@each_kernel
@pytest.mark.parametrize(("dtype", "error"), [(torch.bfloat16, 0.05), (torch.float16, 0.01), (torch.float32, 1e-5)])
def test_every_dtype_gives_nearly_the_same_in_its_own_dtype(attend, dtype, error):
    exact = [heads(13), heads(13), heads(13)]
    rounded = [x.detach().to(dtype).requires_grad_() for x in exact]
    mask = AttentionMask(torch.arange(13) < torch.tensor([[13], [9], [4]]), causal=True)
    expected, output = attend(*exact, mask, 0.0)[0], attend(*rounded, mask, 0.0)[0]
    assert output.dtype == dtype
    assert (output.double() - expected).abs().max() < error * expected.abs().max()
    expected.sum().backward()
    output.sum().backward()
    for low, high in zip(rounded, exact, strict=True):
        assert (low.grad.double() - high.grad).abs().max() <= 2 * error * high.grad.abs().max() + ROUNDING


@each_kernel
def test_autocast_changes_little(attend):
    q, k, v = heads(13, K, torch.bfloat16), heads(13, K, torch.bfloat16), heads(13, K, torch.bfloat16)

    def output_and_gradients() -> list[Tensor]:
        output = attend(q, k, v, AttentionMask(causal=True), 0.0)[0].float()
        return [output, *torch.autograd.grad(output.sum(), (q, k, v))]

    with torch.autocast("cpu", dtype=torch.bfloat16):
        under_autocast = output_and_gradients()
    for autocast, plain in zip(under_autocast, output_and_gradients(), strict=True):
        assert (autocast.float() - plain.float()).abs().max() <= 0.02 * plain.abs().max()


@pytest.mark.parametrize(
    "attend", [attend_explicit, attend_sdpa, SlidingWindow(4).attend], ids=["explicit", "fused", "window"]
)
def test_dropout_on_weights_keeps_the_mean_and_passes_gradients(attend):
    q, k, v = (torch.randn(1, 1, 9, K) for _ in range(3))
    many = [x.expand(4000, H, -1, -1).clone().requires_grad_() for x in (q, k, v)]
    dropped = attend(*many, AttentionMask(causal=True), 0.5)[0]
    plain = attend(q, k, v, AttentionMask(causal=True), 0.0)[0]
    assert not torch.equal(dropped[0], dropped[1])
    assert_close(dropped.mean(dim=(0, 1)), plain[0, 0], rtol=0, atol=0.1)
    dropped.sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in many)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("T", "S"), [(4, 4), (2, 5), (5, 2)])
def test_tiled_passes_a_gradient_check(causal, biased, T, S):
    key_mask = torch.arange(S) < torch.tensor([[S], [1], [0]])
    mask = AttentionMask(key_mask, causal, random_bias(T, S, torch.float64) if biased else None)
    qkv = heads(T, 2), heads(S, 2), heads(S, 3)
    assert gradcheck(lambda q, k, v: attend_tiled(q, k, v, mask, block=2)[0], qkv)


def test_tiled_saves_its_inputs_its_output_and_one_number_a_query_for_backward():
    q, k, v = heads(31), heads(37), heads(37, V)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x) or x, lambda x: x):
        output, _ = attend_tiled(q, k, v, AttentionMask(causal=True), block=BLOCK)
    sizes = sorted(x.numel() for x in saved)
    assert sizes == sorted([q.numel(), k.numel(), v.numel(), output.numel(), B * H * 31])


def test_tiled_is_short_enough_to_read():
    assert len(inspect.getsource(tiled._Tiled).split("\n")) < 120


def test_the_fused_path_on_cpu_keeps_its_kernel_under_a_mask():
    q, k, v = heads(4), heads(7), heads(7)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        attend_sdpa(q, k, v, AttentionMask(torch.ones(B, 7, dtype=torch.bool)))
    assert "aten::_scaled_dot_product_flash_attention_for_cpu" in {event.name for event in profile.events()}
