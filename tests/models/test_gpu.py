"""On CUDA: which kernels run, and that they compute the same."""

import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity

from nmt.models.backends.choice import backends
from nmt.models.backends.explicit import attend_explicit
from nmt.models.backends.fused import attend_fused
from nmt.models.backends.layout import Packed, Padded
from nmt.models.backends.sight import Sight
from nmt.models.backends.varlen import attend_varlen, why_not
from nmt.models.transformer import Transformer

pytestmark = pytest.mark.gpu
H, K = 4, 64
CUDA = torch.device("cuda")
LENGTHS, OTHERS = [7, 1, 31, 19], [5, 23, 2, 11]


def ids(lengths: list[int]) -> Tensor:
    rows = torch.zeros(len(lengths), max(lengths), dtype=torch.long, device=CUDA)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(4, 100, (length,))
    return rows


def heads(tokens: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.randn(1, H, tokens, K, device=CUDA, dtype=dtype).requires_grad_()


def kernels(work: Callable[[], object]) -> set[str]:
    work()
    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    return {event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA}


def model(backend: str, **changed: object) -> Transformer:
    torch.manual_seed(3)
    sizes = {"embedding_size": H * K, "heads": H, "feed_forward_size": 512, "layers": 2, "dropout": 0.0}
    kinds = {"norm": "pre", "activation": "relu", "attention_dropout": 0.0, "tie_embeddings": "none"}
    places = {"attention_window": 64, "positions": "sinusoidal", "max_positions": 64}
    chosen = sizes | kinds | places | changed
    return Transformer(101, 101, 0, **chosen, attention_backend=backend).to(CUDA)  # type: ignore[arg-type]


def test_varlen_runs_here():
    assert why_not(CUDA, torch.bfloat16, K) == ""
    assert why_not(CUDA, torch.float16, K) == ""
    assert "precision=bf16" in why_not(CUDA, torch.float32, K)


def test_auto_takes_varlen_for_halves_and_fused_for_the_rest():
    auto = backends(window=4, head_size=K)["auto"]
    assert "varlen" in auto.in_words(CUDA, torch.bfloat16, 0.0)
    assert "fused" in auto.in_words(CUDA, torch.float32, 0.0)


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("kind", ["around", "so far", "over"])
def test_varlen_equals_the_written_out_one_sentence_by_sentence(kind, empty):
    lengths, others = LENGTHS, list(OTHERS)
    if empty:
        others[1] = 0
    mine, theirs = Packed(ids(lengths), 0), Packed(ids(others), 0)
    if kind != "over":
        theirs, others = mine, lengths
    sight = {"around": mine.around(None), "so far": mine.so_far(None), "over": mine.over(theirs)}[kind]
    given = heads(sum(lengths)), heads(sum(others)), heads(sum(others))
    found = attend_varlen(*given, sight)[0]
    plain = [x.detach().double().requires_grad_() for x in given]
    parts = [
        attend_explicit(q, k, v, Sight(causal=kind == "so far"))[0]
        for q, k, v in zip(
            plain[0].split(lengths, dim=2), plain[1].split(others, dim=2), plain[2].split(others, dim=2), strict=True
        )
    ]
    expected = torch.cat(parts, dim=2)
    upstream = torch.randn_like(expected)
    ours = [found, *torch.autograd.grad(found, given, upstream.to(found.dtype))]
    for x, y in zip(ours, [expected, *torch.autograd.grad(expected, plain, upstream)], strict=True):
        assert (x.double() - y).norm() < 0.02 * y.norm()
    if empty:
        row = slice(lengths[0], lengths[0] + lengths[1])
        assert kind != "over" or found[:, :, row].eq(0).all()


def test_the_flash_kernel_is_what_runs_in_every_attention_of_a_padded_batch():
    src, tgt = ids(LENGTHS), ids(OTHERS)
    trained = model("varlen")

    def work() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            trained(src, tgt).float().sum().backward()

    names = kernels(work)
    flash = {name for name in names if "flash" in name.lower()}
    assert any("fwd" in name for name in flash), names
    assert any("bwd" in name for name in flash), names
    assert not any("softmax" in name.lower() and "flash" not in name.lower() for name in names), names


def test_self_attention_of_target_pieces_stays_on_flash_and_a_mask_leaves_it():
    q = heads(33)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        attend_fused(q, q, q, Padded(ids([33]), 0).so_far(None))[0].sum().backward()
        with pytest.raises(RuntimeError):
            attend_fused(q, q, q, Padded(ids([33]), 0).around(None))


@pytest.mark.parametrize("backend", ["varlen", "fused", "tiled", "window", "auto"])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_a_model_gives_and_learns_the_same_by_every_exact_backend(backend, positions):
    src, tgt = ids(LENGTHS), ids(OTHERS)
    found = []
    for name in (backend, "explicit"):
        trained = model(name, positions=positions)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            features = trained(src, tgt)[tgt != 0].float()
        features.square().sum().backward()
        slopes = torch.cat([p.grad.flatten() for p in trained.parameters() if p.grad is not None])
        found.append((features.detach(), slopes))
    (ours, our_slopes), (theirs, their_slopes) = found
    assert (ours - theirs).norm() < 0.03 * theirs.norm()
    assert torch.cosine_similarity(our_slopes, their_slopes, dim=0) > 0.99


@pytest.mark.parametrize("name", ["fused", "tiled", "window", "linear"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("causal", [False, True])
def test_a_row_with_nothing_to_look_at_gives_zeros_and_zero_gradients(name, dtype, causal):
    attend = backends(window=4, head_size=K)[name].step_by_step.around
    q, k, v = (torch.randn(2, H, 9, K, device=CUDA, dtype=dtype).requires_grad_() for _ in range(3))
    mask = torch.tensor([[False] * 9, [True] * 9], device=CUDA)
    found, _ = attend(q, k, v, Sight(mask, causal), 0.0)
    found.sum().backward()
    assert found[0].eq(0).all()
    assert all(x.grad[0].eq(0).all() and x.grad.isfinite().all() for x in (q, k, v))


@pytest.mark.parametrize("causal", [False, True])
def test_fused_is_four_times_faster_and_ten_times_smaller_than_explicit_at_4096(causal):
    given = heads(4096), heads(4096), heads(4096)
    found = {}
    for attend in (attend_explicit, attend_fused):

        def work(attend=attend) -> None:
            torch.autograd.grad(attend(*given, Sight(causal=causal))[0].sum(), given)

        for _ in range(3):
            work()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before, started = torch.cuda.memory_allocated(), time.perf_counter()
        for _ in range(20):
            work()
        torch.cuda.synchronize()
        found[attend] = time.perf_counter() - started, torch.cuda.max_memory_allocated() - before
    assert found[attend_explicit][0] >= 4 * found[attend_fused][0]
    assert found[attend_explicit][1] >= 10 * found[attend_fused][1]
