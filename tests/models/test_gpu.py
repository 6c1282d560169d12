"""On CUDA: which kernels run, and that they compute the same."""

import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity

from nmt.models.backends import available_backends
from nmt.models.backends.explicit import attend_explicit
from nmt.models.backends.masks import AttentionMask
from nmt.models.backends.packing import PackedBatch, PaddedBatch
from nmt.models.backends.sdpa import attend_sdpa
from nmt.models.backends.varlen import attend_varlen, reason_unavailable
from nmt.models.transformer import Transformer

pytestmark = pytest.mark.gpu
H, K = 4, 64
CUDA = torch.device("cuda")
LENGTHS, SOURCE_LENGTHS = [7, 1, 31, 19], [5, 23, 2, 11]


def ids(lengths: list[int]) -> Tensor:
    rows = torch.zeros(len(lengths), max(lengths), dtype=torch.long, device=CUDA)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(4, 100, (length,))
    return rows


def heads(tokens: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.randn(1, H, tokens, K, device=CUDA, dtype=dtype).requires_grad_()


def cuda_kernels(work: Callable[[], object]) -> set[str]:
    work()
    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    return {event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA}


def model(backend: str, **changed: object) -> Transformer:
    torch.manual_seed(3)
    sizes = {"embedding_size": H * K, "heads": H, "feed_forward_size": 512, "layers": 2, "dropout": 0.0}
    choices = {"norm": "pre", "activation": "relu", "attention_dropout": 0.0, "tie_embeddings": "none"}
    positions = {"attention_window": 64, "positions": "sinusoidal", "max_positions": 64}
    settings = sizes | choices | positions | changed
    return Transformer(101, 101, 0, **settings, attention_backend=backend).to(CUDA)  # type: ignore[arg-type]


def test_varlen_runs_here():
    assert reason_unavailable(CUDA, torch.bfloat16, K) == ""
    assert reason_unavailable(CUDA, torch.float16, K) == ""
    assert "precision=bf16" in reason_unavailable(CUDA, torch.float32, K)


def test_auto_takes_varlen_in_16_bits_and_fused_in_32():
    auto = available_backends(window=4, head_size=K)["auto"]
    assert "varlen" in auto.describe(CUDA, torch.bfloat16, 0.0)
    assert "fused" in auto.describe(CUDA, torch.float32, 0.0)


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
def test_varlen_equals_explicit_attention_sentence_by_sentence(kind, empty):
    lengths, key_lengths = LENGTHS, list(SOURCE_LENGTHS)
    if empty:
        key_lengths[1] = 0
    queries, keys = PackedBatch(ids(lengths), 0), PackedBatch(ids(key_lengths), 0)
    if kind != "cross":
        keys, key_lengths = queries, lengths
    qkv = heads(sum(lengths)), heads(sum(key_lengths)), heads(sum(key_lengths))
    output = attend_varlen(*qkv, queries.attention_mask(keys, causal=kind == "causal"))[0]
    exact = [x.detach().double().requires_grad_() for x in qkv]
    parts = [
        attend_explicit(q, k, v, AttentionMask(causal=kind == "causal"))[0]
        for q, k, v in zip(
            exact[0].split(lengths, dim=2),
            exact[1].split(key_lengths, dim=2),
            exact[2].split(key_lengths, dim=2),
            strict=True,
        )
    ]
    expected = torch.cat(parts, dim=2)
    upstream = torch.randn_like(expected)
    computed = [output, *torch.autograd.grad(output, qkv, upstream.to(output.dtype))]
    for x, y in zip(computed, [expected, *torch.autograd.grad(expected, exact, upstream)], strict=True):
        assert (x.double() - y).norm() < 0.02 * y.norm()
    if empty:
        row = slice(lengths[0], lengths[0] + lengths[1])
        assert kind != "cross" or output[:, :, row].eq(0).all()


def test_every_attention_of_a_padded_batch_runs_in_the_flash_kernel():
    src, tgt = ids(LENGTHS), ids(SOURCE_LENGTHS)
    trained = model("varlen")

    def work() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            trained(src, tgt).float().sum().backward()

    names = cuda_kernels(work)
    flash = {name for name in names if "flash" in name.lower()}
    assert any("fwd" in name for name in flash), names
    assert any("bwd" in name for name in flash), names
    assert not any("softmax" in name.lower() and "flash" not in name.lower() for name in names), names


def test_causal_self_attention_runs_in_flash_and_a_key_mask_rules_it_out():
    q, batch = heads(33), PaddedBatch(ids([33]), 0)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        attend_sdpa(q, q, q, batch.attention_mask(batch, causal=True))[0].sum().backward()
        with pytest.raises(RuntimeError):
            attend_sdpa(q, q, q, batch.attention_mask(batch))


@pytest.mark.parametrize("backend", ["varlen", "fused", "tiled", "window", "auto"])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_features_and_gradients_agree_under_every_exact_backend(backend, positions):
    src, tgt = ids(LENGTHS), ids(SOURCE_LENGTHS)
    results = []
    for name in (backend, "explicit"):
        trained = model(name, positions=positions)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            features = trained(src, tgt)[tgt != 0].float()
        features.square().sum().backward()
        gradient = torch.cat([p.grad.flatten() for p in trained.parameters() if p.grad is not None])
        results.append((features.detach(), gradient))
    (features, gradient), (expected, expected_gradient) = results
    assert (features - expected).norm() < 0.03 * expected.norm()
    assert torch.cosine_similarity(gradient, expected_gradient, dim=0) > 0.99


@pytest.mark.parametrize("name", ["fused", "tiled", "window", "linear"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("causal", [False, True])
def test_a_row_without_any_key_gives_zeros_and_zero_gradients(name, dtype, causal):
    attend = available_backends(window=4, head_size=K)[name].for_search.self_attention
    q, k, v = (torch.randn(2, H, 9, K, device=CUDA, dtype=dtype).requires_grad_() for _ in range(3))
    mask = torch.tensor([[False] * 9, [True] * 9], device=CUDA)
    output, _ = attend(q, k, v, AttentionMask(mask, causal), 0.0)
    output.sum().backward()
    assert output[0].eq(0).all()
    assert all(x.grad[0].eq(0).all() and x.grad.isfinite().all() for x in (q, k, v))


@pytest.mark.parametrize("causal", [False, True])
def test_fused_is_four_times_faster_and_ten_times_smaller_than_explicit_at_4096(causal):
    qkv = heads(4096), heads(4096), heads(4096)
    measured = {}
    for attend in (attend_explicit, attend_sdpa):

        def work(attend=attend) -> None:
            torch.autograd.grad(attend(*qkv, AttentionMask(causal=causal))[0].sum(), qkv)

        for _ in range(3):
            work()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before, started = torch.cuda.memory_allocated(), time.perf_counter()
        for _ in range(20):
            work()
        torch.cuda.synchronize()
        measured[attend] = time.perf_counter() - started, torch.cuda.max_memory_allocated() - before
    assert measured[attend_explicit][0] >= 4 * measured[attend_sdpa][0]
    assert measured[attend_explicit][1] >= 10 * measured[attend_sdpa][1]
