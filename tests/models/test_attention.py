"""Scorers of the recurrent decoders, each against its equation."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.testing import assert_close

from nmt.errors import ConfigError, UserError
from nmt.models.attention import (
    Additive,
    Attention,
    Dot,
    FixedContext,
    General,
    InitialStateOnly,
    Location,
    Memory,
    ScaledDot,
    additive_scores,
    additive_scores_explicit,
)

B, T, S, D, E, A = 2, 3, 5, 7, 11, 13
MASK = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def memory_for(attention: Attention, encoder_size: int) -> Memory:
    states = randn(B, S, encoder_size)
    steps = torch.arange(T).expand(B, T)
    return Memory(states, attention.keys(states), randn(B, encoder_size), (), MASK, steps)


def masked_softmax(scores: Tensor) -> Tensor:
    return scores.masked_fill(~MASK[:, None], -torch.inf).softmax(dim=-1)


def check(attention: Attention, query: Tensor, memory: Memory, scores: Tensor) -> None:
    context, weights = attention(query, memory)
    assert_close(weights, masked_softmax(scores))
    assert_close(context, torch.einsum("bts,bse->bte", masked_softmax(scores), memory.states))


def test_additive_is_v_tanh_of_the_sum_of_query_and_state():
    attention = Additive(query_size=D, encoder_size=E, size=A).double()
    query, memory = randn(B, T, D), memory_for(attention, E)
    hidden = torch.tanh(attention.W(query)[:, :, None] + attention.U(memory.states)[:, None])
    check(attention, query, memory, hidden @ attention.v)


def test_additive_is_the_plain_concat():
    attention = Additive(query_size=D, encoder_size=E, size=A).double()
    query, memory = randn(B, T, D), memory_for(attention, E)
    pairs = torch.cat([query[:, :, None].expand(B, T, S, D), memory.states[:, None].expand(B, T, S, E)], dim=-1)
    joined = torch.cat([attention.W.weight, attention.U.weight], dim=1)
    check(attention, query, memory, torch.tanh(pairs @ joined.T) @ attention.v)


def test_dot_is_the_dot_product():
    attention = Dot(query_size=E, encoder_size=E)
    query, memory = randn(B, T, E), memory_for(attention, E)
    check(attention, query, memory, torch.einsum("bte,bse->bts", query, memory.states))


def test_scaled_dot_divides_by_the_root_of_the_size():
    attention = ScaledDot(query_size=E, encoder_size=E)
    query, memory = randn(B, T, E), memory_for(attention, E)
    check(attention, query, memory, torch.einsum("bte,bse->bts", query, memory.states) / E**0.5)


def test_general_has_a_matrix_between_query_and_state():
    attention = General(query_size=D, encoder_size=E).double()
    query, memory = randn(B, T, D), memory_for(attention, E)
    check(attention, query, memory, torch.einsum("btd,de,bse->bts", query, attention.W.weight, memory.states))


def test_location_weights_depend_on_the_query_alone():
    attention = Location(query_size=D, encoder_size=E, max_pieces=6).double()
    query, memory = randn(B, T, D), memory_for(attention, E)
    check(attention, query, memory, torch.einsum("btd,sd->bts", query, attention.W.weight[:S]))


def test_location_refuses_a_source_longer_than_its_table():
    attention = Location(query_size=D, encoder_size=E, max_pieces=3).double()
    query, memory = randn(B, T, D), memory_for(attention, E)
    with pytest.raises(UserError, match=r"3 source pieces, and a sentence here has 4.*max_pieces.*max_src_pieces=3"):
        attention(query, memory)
    only_padding_beyond = memory._replace(mask=MASK & (torch.arange(S) < 4))
    context, weights = attention(query, only_padding_beyond)
    assert context.isfinite().all()
    assert weights[..., 4].eq(0).all()


def test_fixed_context_is_the_summary_for_every_query():
    attention = FixedContext(query_size=D, encoder_size=E)
    memory = memory_for(attention, E)
    context, _ = attention(randn(B, T, D), memory)
    assert torch.equal(context, memory.summary[:, None].expand(B, T, E))


def test_initial_state_only_has_an_empty_context():
    attention = InitialStateOnly(query_size=D, encoder_size=E)
    assert attention(randn(B, T, D), memory_for(attention, E))[0].shape == (B, T, 0)


@pytest.mark.parametrize("kind", [Dot, ScaledDot])
def test_a_dot_product_of_unequal_sizes_is_refused_with_an_alternative(kind):
    with pytest.raises(ConfigError, match=r"size 7 with encoder states of 11.*attention=general"):
        kind(query_size=D, encoder_size=E)


def test_fused_additive_scores_and_gradients_equal_the_explicit_ones():
    inputs = [randn(B, T, A).requires_grad_(), randn(B, S, A).requires_grad_(), randn(A).requires_grad_()]
    fused, explicit = additive_scores(*inputs), additive_scores_explicit(*inputs)
    assert_close(fused, explicit)
    upstream = randn(B, T, S)
    for grad, expected in zip(
        torch.autograd.grad(fused, inputs, upstream), torch.autograd.grad(explicit, inputs, upstream), strict=True
    ):
        assert_close(grad, expected)


def test_additive_scores_pass_a_gradient_check():
    inputs = (randn(B, T, A).requires_grad_(), randn(B, S, A).requires_grad_(), randn(A).requires_grad_())
    assert gradcheck(additive_scores, inputs)


def test_additive_scores_stay_finite_at_extreme_values():
    query = torch.tensor([[[-1e4, 1e4, 0.0]]], requires_grad=True)
    scores = additive_scores(query, torch.zeros(1, 2, 3), torch.ones(3))
    scores.sum().backward()
    assert scores.isfinite().all()
    assert query.grad.isfinite().all()
