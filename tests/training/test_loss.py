"""The loss equals PyTorch's cross entropy, and chunks change nothing."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from nmt.training import loss

N, V, D, B, T = 11, 13, 7, 3, 5


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_sums_are_those_of_cross_entropy(smoothing: float) -> None:
    logits, target = torch.randn(N, V, dtype=torch.float64), torch.randint(V, (N,))
    smoothed, nll = loss.nll_sums(logits.float(), target, smoothing)
    expected = F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)
    assert_close(smoothed.double(), expected, rtol=1e-5, atol=1e-5)
    assert_close(nll.double(), F.cross_entropy(logits, target, reduction="sum"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_is_that_of_cross_entropy(smoothing: float) -> None:
    logits, target = torch.randn(N, V, requires_grad=True), torch.randint(V, (N,))
    (grad,) = torch.autograd.grad(loss.nll_sums(logits, target, smoothing)[0], logits)
    plain = F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)
    assert_close(grad, torch.autograd.grad(plain, logits)[0])


@pytest.mark.parametrize("chunk", [1, 4, 1024])
def test_chunks_change_neither_the_loss_nor_any_gradient(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", chunk)
    inputs, target = torch.randn(B, T, D), torch.randint(1, V, (B, T))
    target[0, 3:] = 0
    gradients = []
    for chunked in (True, False):
        torch.manual_seed(2)
        layer, out = torch.nn.Linear(D, D), torch.nn.Linear(D, V)
        features = torch.tanh(layer(inputs))
        if chunked:
            nll = loss.backward_in_chunks(out, features, target, 0, 0.1, 17)
        else:
            flat = out(features).flatten(0, 1)
            mean = F.cross_entropy(flat, target.flatten(), ignore_index=0, reduction="sum", label_smoothing=0.1) / 17
            mean.backward()
            nll = F.cross_entropy(flat, target.flatten(), ignore_index=0, reduction="sum")
        gradients.append((nll.detach(), layer.weight.grad, out.weight.grad, out.bias.grad))
    assert_close(gradients[0], gradients[1])


def test_padding_does_not_count() -> None:
    features, target = torch.randn(1, T, D), torch.zeros(1, T, dtype=torch.long)
    target[0, 0] = 3
    changed = features.clone()
    changed[0, 1:] = 9
    project = torch.nn.Linear(D, V)
    assert_close(loss.summed_nll(project, features, target, 0), loss.summed_nll(project, changed, target, 0))
