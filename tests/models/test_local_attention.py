"""Local attention against its equations, written out over the whole sentence."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.testing import assert_close

from nmt.errors import ConfigError
from nmt.models.attention import Additive, Attention, Dot, General, InitialStateOnly, Location, Memory, ScaledDot
from nmt.models.control_attention import FrozenRandom
from nmt.models.local_attention import LocalM, LocalP

B, T, S, E, A, HALF_WIDTH = 2, 3, 11, 7, 13, 2
LENGTHS = torch.tensor([11, 4])
MASK = torch.arange(S) < LENGTHS[:, None]
POSITIONS = torch.arange(S)
CONTENT = [partial(Additive, size=A), Dot, ScaledDot, General]
Local = LocalM | LocalP


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def memory_for(attention: Attention, states: Tensor, first_step: int = 0) -> Memory:
    steps = first_step + torch.arange(T).expand(B, T)
    return Memory(states, attention.keys(states), randn(B, E), (), MASK, steps)


def explicit(local: Local, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
    """The inner scorer's weights over the sentence, cut to the window, normalised again; and |s - p|."""
    distance = (POSITIONS - local.centre(query, memory)[..., None]).abs()
    _, global_weights = local.score(query, memory)
    window_weights = global_weights * (distance <= HALF_WIDTH)
    return window_weights / window_weights.sum(dim=-1, keepdim=True), distance


@pytest.mark.parametrize("score", CONTENT)
def test_local_m_is_a_softmax_in_a_window_that_moves_a_piece_a_step(score: Callable[..., Attention]) -> None:
    local = LocalM(E, E, window=HALF_WIDTH, score=score).double()
    query, memory = randn(B, T, E), memory_for(local, randn(B, S, E), first_step=3)
    assert local.centre(query, memory).tolist() == [[3, 4, 5], [3, 3, 3]]  # the second sentence ends at 3
    context, weights = local(query, memory)
    expected, _ = explicit(local, query, memory)
    assert_close(weights, expected)
    assert_close(context, expected @ memory.states)


@pytest.mark.parametrize("score", CONTENT)
def test_local_p_has_a_gaussian_around_its_predicted_centre(score: Callable[..., Attention]) -> None:
    local = LocalP(E, E, window=HALF_WIDTH, score=score).double()
    query, memory = 5 * randn(B, T, E), memory_for(local, randn(B, S, E))
    predicted = LENGTHS[:, None] * torch.sigmoid(torch.tanh(query @ local.W.weight.T) @ local.v)
    assert_close(local.centre(query, memory), predicted)
    context, weights = local(query, memory)
    expected, distance = explicit(local, query, memory)
    expected = expected * torch.exp(-distance.square() / (2 * (HALF_WIDTH / 2) ** 2))
    assert_close(weights, expected)
    assert_close(context, expected @ memory.states)


@pytest.mark.parametrize("kind", [LocalM, LocalP])
def test_states_outside_the_window_do_not_matter(kind: type[Local]) -> None:
    local = kind(E, E, window=HALF_WIDTH, score=General).double()
    query, states = randn(B, T, E), randn(B, S, E)
    memory = memory_for(local, states)
    context, weights = local(query, memory)
    outside = weights.eq(0).all(dim=1)
    assert outside[0].any()
    other = torch.where(outside[..., None], randn(B, S, E), states)
    assert_close(local(query, memory_for(local, other))[0], context)


@pytest.mark.parametrize("kind", [LocalM, LocalP])
def test_a_window_wider_than_the_sentence_covers_it(kind: type[Local]) -> None:
    local = kind(E, E, window=99, score=General).double()
    query, memory = randn(B, T, E), memory_for(local, randn(B, S, E))
    _, weights = local(query, memory)
    if kind is LocalP:
        distance = POSITIONS - local.centre(query, memory)[..., None]
        weights = weights / torch.exp(-distance.square() / (2 * (99 / 2) ** 2))
    assert_close(weights, local.score(query, memory)[1])


@pytest.mark.parametrize("score", [partial(Additive, size=A), Dot])
def test_local_p_passes_a_gradient_check(score: Callable[..., Attention]) -> None:
    local = LocalP(E, E, window=HALF_WIDTH, score=score).double()

    def run(query: Tensor, states: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        return local(query, memory_for(local, states))

    inputs = (randn(B, T, E).requires_grad_(), randn(B, S, E).requires_grad_(), *local.parameters())
    assert gradcheck(run, inputs)


def test_the_additive_attention_passes_a_gradient_check() -> None:
    additive = Additive(E, E, size=A).double()

    def run(query: Tensor, states: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        return additive(query, memory_for(additive, states))

    inputs = (randn(B, T, E).requires_grad_(), randn(B, S, E).requires_grad_(), *additive.parameters())
    assert gradcheck(run, inputs)


def test_the_window_moves_with_the_predicted_centre() -> None:
    local = LocalP(1, E, window=HALF_WIDTH, score=General).double()
    with torch.no_grad():
        local.W.weight.fill_(1.0)
        local.v.fill_(9.0)
    query = torch.tensor([-2.0, 0.0, 2.0], dtype=torch.float64).expand(B, T)[..., None]
    memory = memory_for(local, randn(B, S, E))
    _, weights = local(query, memory)
    attended = [[row.nonzero().flatten().tolist() for row in sentence] for sentence in weights]
    assert attended == [[[0, 1, 2], [4, 5, 6, 7], [9, 10]], [[0, 1, 2], [0, 1, 2, 3], [2, 3]]]


@pytest.mark.parametrize(
    "score",
    [partial(Location, max_pieces=9), partial(FrozenRandom, seed=1, sharpness=1.0), InitialStateOnly],
    ids=["location", "random", "initial_state"],
)
@pytest.mark.parametrize("kind", [LocalM, LocalP])
def test_a_scorer_that_compares_no_states_is_refused(kind: type[Local], score: Callable[..., Attention]) -> None:
    with pytest.raises(ConfigError, match=r"attention@model\.attention\.score=additive"):
        kind(E, E, window=HALF_WIDTH, score=score)
