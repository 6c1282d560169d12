"""The controls cannot select by content: equal weights, and weights that depend on positions alone."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nmt.models.attention import Attention, Memory
from nmt.models.control_attention import FrozenRandom, MeanOfStates, hashed_uniform

B, T, S, D, E = 2, 3, 5, 7, 11
MASK = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
SRC = torch.tensor([[5, 6, 7, 22, 3], [9, 8, 3, 0, 0]])
TGT_IN = torch.tensor([[2, 5, 6, 18], [2, 7, 0, 0]])


def memory_for(attention: Attention) -> Memory:
    states = torch.randn(B, S, E)
    return Memory(states, attention.keys(states), torch.randn(B, E), (), MASK, torch.arange(T).expand(B, T))


def random_weights(seed: int, query: Tensor, memory: Memory) -> Tensor:
    return FrozenRandom(D, E, seed=seed, sharpness=10.0)(query, memory)[1]


def test_the_mean_is_the_mean_of_the_real_states():
    attention = MeanOfStates(D, E)
    memory = memory_for(attention)
    context, weights = attention(torch.randn(B, T, D), memory)
    assert_close(context[0], memory.states[0].mean(dim=0).expand(T, E))
    assert_close(context[1], memory.states[1, :2].mean(dim=0).expand(T, E))
    assert_close(weights[1, 0], torch.tensor([0.5, 0.5, 0, 0, 0]))


@pytest.mark.parametrize("experiment", ["bahdanau", "luong"])
@pytest.mark.parametrize("attention", ["random", "mean"])
def test_a_control_has_no_parameters(build, experiment, attention):
    model = build(f"experiment={experiment} attention={attention}")
    assert not list(model.attention.parameters())
    assert not list(model.attention.buffers())


def test_frozen_random_weights_do_not_depend_on_content():
    memory = memory_for(MeanOfStates(D, E))
    other = memory._replace(states=torch.randn(B, S, E))
    weights = random_weights(1, torch.randn(B, T, D), memory)
    assert torch.equal(weights, random_weights(1, torch.randn(B, T, D), other))
    assert_close(weights[0, :, :2] / weights[0, :, :2].sum(-1, keepdim=True), weights[1, :, :2])


def test_frozen_random_weights_are_a_function_of_seed_and_step_alone():
    query, memory = torch.randn(B, T, D), memory_for(MeanOfStates(D, E))
    weights = random_weights(1, query, memory)
    torch.manual_seed(99)
    assert torch.equal(random_weights(1, query, memory), weights)
    assert not torch.allclose(random_weights(2, query, memory), weights)
    assert not torch.allclose(weights[:, 0], weights[:, 1])
    later = memory._replace(steps=memory.steps + 1)
    assert torch.equal(random_weights(1, query, later)[:, :-1], weights[:, 1:])


def test_a_trained_model_keeps_the_weights_of_its_seed(build):
    model = build("experiment=luong attention=random")
    before = model.weights(SRC, TGT_IN)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    assert torch.equal(model.weights(SRC, TGT_IN), before)
    assert not torch.allclose(
        build("experiment=luong attention=random model.attention.seed=2").weights(SRC, TGT_IN), before
    )


def test_the_hashed_numbers_are_uniform_and_uncorrelated():
    u = hashed_uniform(1, torch.arange(300)[:, None], torch.arange(400)).double()
    assert u.min() >= 0
    assert u.max() < 1
    assert u.mean().item() == pytest.approx(0.5, abs=0.005)
    assert u.var().item() == pytest.approx(1 / 12, abs=0.002)
    for shifted in (
        u.roll(1, 0),
        u.roll(1, 1),
        hashed_uniform(2, torch.arange(300)[:, None], torch.arange(400)).double(),
    ):
        assert torch.corrcoef(torch.stack([u.flatten(), shifted.flatten()]))[0, 1].abs() < 0.02


def test_sharpness_says_how_many_pieces_carry_a_weight():
    n, sharpness = 200, 10.0
    memory = Memory(
        torch.randn(1, n, E), torch.randn(1, n, 0), torch.randn(1, E), (), torch.ones(1, n, dtype=torch.bool),
        torch.arange(50)[None],
    )  # fmt: skip
    _, weights = FrozenRandom(D, E, seed=1, sharpness=sharpness)(torch.randn(1, 50, D), memory)
    effective_pieces = 1 / weights.square().sum(dim=-1)
    assert effective_pieces.mean().item() == pytest.approx(2 * n / sharpness, rel=0.15)
