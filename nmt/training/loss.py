"""Summed negative log-likelihood, with label smoothing, in chunks that keep the logits small."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

CHUNK = 1024  # positions whose logits exist at one time: (1024, V) instead of (B * T, V)


class _SmoothedNll(torch.autograd.Function):
    """(N, V) logits, (N,) target -> sums of the smoothed loss and of the plain NLL, in nats.

    The smoothed target puts 1 - e on the true piece and e / V on every piece (arXiv:1512.00567, section 7).
    Written as one function because its gradient, softmax minus smoothed target, needs a single (N, V) tensor.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        scores = logits.float()
        true = scores.gather(1, target[:, None]).squeeze(1)
        mean = scores.mean(dim=1) if smoothing else true
        normaliser = scores.logsumexp(dim=1)
        ctx.save_for_backward(logits, target, normaliser)
        ctx.smoothing = smoothing
        nll = normaliser - true
        smoothed = normaliser - (1 - smoothing) * true - smoothing * mean
        ctx.mark_non_differentiable(nll_sum := nll.sum())
        return smoothed.sum(), nll_sum

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        logits, target, normaliser = ctx.saved_tensors
        grad_logits = (logits.float() - normaliser[:, None]).exp_()
        if ctx.smoothing:
            grad_logits -= ctx.smoothing / logits.shape[1]
        grad_logits[torch.arange(len(target), device=target.device), target] -= 1 - ctx.smoothing
        return (grad_logits * grads[0]).to(logits.dtype), None, None


def nll_sums(logits: Tensor, target: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """(N, V) logits, (N,) target -> the smoothed loss (with a gradient) and the plain NLL, both summed.

    Callers divide once, after summing: a mean of batch means weighs short batches too much.
    """
    smoothed, nll = _SmoothedNll.apply(logits, target, smoothing)
    return smoothed, nll


def backward_in_chunks(
    project: Callable[[Tensor], Tensor], features: Tensor, target: Tensor, pad_id: int, smoothing: float, divisor: int
) -> Tensor:
    """Backpropagate the loss of (B, T, D) features against (B, T) target, divided by `divisor`; returns the NLL sum.

    Padding positions are left out before the projection, and each chunk's logits are freed before the next
    chunk's are computed, so memory does not grow with B * T * V.
    """
    real = target != pad_id
    targets = target[real]  # (N,)
    inputs = features[real]  # (N, D)
    leaf = inputs.detach().requires_grad_()
    total = torch.zeros((), device=features.device)
    for start in range(0, len(targets), CHUNK):
        part = slice(start, start + CHUNK)
        smoothed, nll = nll_sums(project(leaf[part]), targets[part], smoothing)
        (smoothed / divisor).backward()
        total += nll.detach()
    inputs.backward(leaf.grad)
    return total


@torch.no_grad()
def summed_nll(project: Callable[[Tensor], Tensor], features: Tensor, target: Tensor, pad_id: int) -> Tensor:
    """The NLL sum of (B, T, D) features against (B, T) target, without gradients."""
    real = target != pad_id
    targets, inputs = target[real], features[real]
    total = torch.zeros((), device=features.device)
    for start in range(0, len(targets), CHUNK):
        part = slice(start, start + CHUNK)
        total += nll_sums(project(inputs[part]), targets[part])[1]
    return total
