"""Cells and dense blocks are two ways to keep one matrix: same determinants, solutions, gradients and fits."""

from __future__ import annotations

import resource
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.mixed import blocks as blocks_module
from analysis.mixed import deviance as laplace_module
from analysis.mixed import deviance as linear_module
from analysis.mixed import elimination, fit
from analysis.mixed.blocks import CellLayout, EffectsLayout, RandomEffectsBlock
from analysis.mixed.elimination import FEW, BlockStructure, DenseStructure, SortedStructure
from stimuli.errors import UserError


def grouping(draw: np.random.Generator, codes: np.ndarray, width: int) -> RandomEffectsBlock:
    dense = np.unique(codes, return_inverse=True)[1].astype(np.intp)
    return RandomEffectsBlock(dense, int(dense.max()) + 1, draw.normal(size=(len(codes), width)))


def largest_first(effects: list[RandomEffectsBlock]) -> list[RandomEffectsBlock]:
    return sorted(effects, key=lambda e: -e.n_levels * e.width)


@st.composite
def designs(draw: st.DrawFn) -> list[RandomEffectsBlock]:
    """Two to four factors, crossed at random or nested in one another, with one to three columns each."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(20, 150))
    count = draw(st.integers(1, 4))
    codes = [rng.integers(0, draw(st.integers(2, 40)), n)]
    for _ in range(count - 1):
        nested = draw(st.booleans())
        codes.append(
            codes[-1] // draw(st.integers(2, 5)) if nested else rng.integers(0, draw(st.integers(2, 30)), n)
        )
    return largest_first([grouping(rng, c, draw(st.integers(1, 3))) for c in codes])


@given(
    designs(),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 3, 64]),
    st.sampled_from([0, 1000]),
    st.sampled_from([1, 8]),
)
def test_cells_give_what_dense_blocks_give(
    effects: list[RandomEffectsBlock], seed: int, most_paired: int, much: int, shared: int
) -> None:
    draw = np.random.default_rng(seed)
    for one in effects[1:]:
        if draw.random() < 0.3:
            # a term that is confined to some rows
            one.columns[draw.random(len(one.columns)) < 0.5] = 0.0
    with (
        patch.object(elimination, "MOST_PAIRED", most_paired),
        patch.object(blocks_module, "MUCH", much),
        patch.object(elimination, "SHARED", shared),
    ):
        dense, cells = EffectsLayout(effects), CellLayout(effects)
    weights = draw.uniform(0.05, 1.0, dense.n)
    lambdas = [np.tril(draw.normal(size=(e.width, e.width))) for e in effects]
    products = dense.products(weights), cells.products(weights)
    one, other = dense.factor(products[0], lambdas), cells.factor(products[1], lambdas)
    assert one.logdet == pytest.approx(other.logdet, rel=1e-9, abs=1e-9)
    right = dense.transpose_times_columns(draw.normal(size=(dense.n, 3)))
    for a, b in (
        (one.solve(right), other.solve(right)),
        (products[0].times(right), products[1].times(right)),
    ):
        assert np.abs(a - b).max() < 1e-8 * (1.0 + np.abs(a).max())
    p, q = one.invert(), other.invert()
    for a, b in zip(p.trace_terms(), q.trace_terms(), strict=True):
        assert b == pytest.approx(a, rel=1e-7, abs=1e-8)
    assert q.leverages() == pytest.approx(p.leverages(), rel=1e-7, abs=1e-9)


def within_items(draw: np.random.Generator, wordings: int, people: int) -> list[RandomEffectsBlock]:
    """Items in five conditions, answered by six models under some wordings, and by people: crossed within each item."""
    item, condition, model, wording = (part.ravel() for part in np.indices((60, 5, 6, 2)).astype(np.intp))
    keep = draw.random(len(item)) < 0.9
    item, condition, model, wording = item[keep], condition[keep], model[keep], wording[keep]
    codes = [
        ((item * 5 + condition) * 6 + model, 1), (item * 6 + model, 1), (item * 5 + condition, 2), (item, 2),
    ]  # fmt: skip
    codes += [(draw.integers(0, wordings, len(item)), 1)] if wordings else []
    codes += [(draw.integers(0, people, len(item)), 3)] if people else []
    return largest_first([grouping(draw, one, width) for one, width in codes])


@pytest.mark.parametrize(("wordings", "people"), [(0, 0), (5, 40)])
def test_what_meets_within_items_alone_is_factored_item_by_item(wordings: int, people: int) -> None:
    draw = np.random.default_rng(7)
    effects = within_items(draw, wordings, people)
    dense, cells = EffectsLayout(effects), CellLayout(effects)
    weights = draw.uniform(0.05, 1.0, dense.n)
    lambdas = [np.tril(draw.normal(size=(e.width, e.width))) for e in effects]
    one = dense.factor(dense.products(weights), lambdas)
    other = cells.factor(cells.products(weights), lambdas)
    assert other.logdet == pytest.approx(one.logdet, rel=1e-10)
    right = dense.transpose_times_columns(draw.normal(size=(dense.n, 2)))
    a, b = one.solve(right), other.solve(right)
    assert b == pytest.approx(a, abs=1e-9)
    for p, q in zip(one.invert().trace_terms(), other.invert().trace_terms(), strict=True):
        assert q == pytest.approx(p, rel=1e-8, abs=1e-8)
    assert other.invert().leverages() == pytest.approx(one.invert().leverages(), rel=1e-8)
    last = cells.structure
    while type(last) is BlockStructure:
        last = last.rest
    assert isinstance(last, SortedStructure) and last.order > FEW
    # the square of what meets within an item, not that of all items
    tied = 3 * people + wordings
    assert last.size < 60 * 20 * (20 + tied) + tied**2 < last.order**2


@pytest.mark.parametrize(
    ("formula", "family"),
    [
        ("rt ~ cond + (1 + cond | participant) + (1 | item)", "gaussian"),
        ("errors ~ agent + (1 | participant) + (1 + agent | item)", "poisson"),
    ],
)
def test_a_fit_by_cells_is_the_fit_by_blocks(
    formula: str, family: str, crossed: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = crossed(seed=11)  # type: ignore[operator]
    dense = fit(formula, data, family)
    for module in (linear_module, laplace_module):
        monkeypatch.setattr(module, "make_layout", CellLayout)
    cells = fit(formula, data, family)
    assert cells.loglik == pytest.approx(dense.loglik, abs=1e-8)
    assert cells.fixed["se"].to_numpy() == pytest.approx(dense.fixed["se"].to_numpy(), rel=1e-6)
    for name, table in dense.modes.items():
        assert cells.modes[name].to_numpy() == pytest.approx(table.to_numpy(), abs=1e-5)


def test_what_would_not_fit_into_memory_is_refused_before_it_is_tried() -> None:
    draw = np.random.default_rng(6)
    n = 120_000
    data = pd.DataFrame(
        {"y": draw.normal(size=n), "f": draw.integers(0, 40_000, n), "g": draw.integers(0, 39_000, n)}
    )
    with pytest.raises(UserError, match="GB"):
        fit("y ~ 1 + (1 | f) + (1 | g)", data)


GROWTH = """
import resource, sys
import numpy as np, pandas as pd
from analysis.mixed import fit
n = int(sys.argv[1]); draw = np.random.default_rng(1)
data = pd.DataFrame({"s": draw.integers(0, n // 20, n), "d": draw.integers(0, 400, n)})
data["y"] = draw.normal(size=n) + draw.normal(size=n // 20)[data["s"]] + draw.normal(size=400)[data["d"]]
fit("y ~ 1 + (1 | s) + (1 | d)", data.head(2000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fit("y ~ 1 + (1 | s) + (1 | d)", data)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.full
def test_memory_grows_with_the_rows_and_no_faster() -> None:
    unit = 1024 if sys.platform != "darwin" else 1024**2
    assert resource.getpagesize() > 0

    def growth(rows: int) -> float:
        done = subprocess.run(
            [sys.executable, "-c", GROWTH, str(rows)], capture_output=True, text=True, check=True, timeout=240
        )
        return int(done.stdout) / unit

    small, large = growth(20_000), growth(80_000)
    # Levels grow fourfold too; products of levels would make it sixteenfold.
    assert large < 8.0 * small + 20.0


def test_many_people_are_eliminated_before_items_where_that_leaves_less() -> None:
    """As they come items go first and leave all people among one another; past a bound that would be refused."""
    draw = np.random.default_rng(2)
    session, item = (part.ravel() for part in np.indices((300, 60)).astype(np.intp))
    condition, is_model = draw.integers(0, 4, len(item)), session % 2 == 1
    columns = draw.normal(size=(len(item), 5)) * np.column_stack([~is_model] * 4 + [is_model])
    cell = (item * 4 + condition) * 7 + np.where(is_model, 1 + session % 12 // 2, 0)
    effects = largest_first([
        RandomEffectsBlock(np.where(is_model, 150, session // 2), 151, columns[:, :4]),
        RandomEffectsBlock(np.where(is_model, session // 2, 150), 151, columns[:, 4:]),
        RandomEffectsBlock(cell, 1680, columns[:, 4:]), grouping(draw, item * 4 + condition, 2), grouping(draw, item, 2),
    ])  # fmt: skip
    with patch.object(blocks_module, "MUCH", np.inf):
        usual = CellLayout(effects)
    with patch.object(blocks_module, "MUCH", 100):
        turned = CellLayout(effects)
    assert turned.order != usual.order
    assert turned.structure.work < usual.structure.work
    assert turned.structure.full_order < usual.structure.full_order
    bound = usual.structure.full_order - 1
    with patch.object(elimination, "MOST_DENSE", bound), patch.object(blocks_module, "MUCH", np.inf):
        refused = CellLayout(effects)
    assert refused.order == turned.order
    weights = draw.uniform(0.05, 1.0, usual.n)
    lambdas = [np.tril(draw.normal(size=(e.width, e.width))) for e in effects]
    one, other = (of.factor(of.products(weights), lambdas) for of in (usual, turned))
    assert other.logdet == pytest.approx(one.logdet, rel=1e-11)
    for p, q in zip(one.invert().trace_terms(), other.invert().trace_terms(), strict=True):
        assert q == pytest.approx(p, rel=1e-8, abs=1e-8)


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    structure = DenseStructure(2)
    with pytest.raises(np.linalg.LinAlgError):
        structure.factor(np.array([1.0, 0.0, 2.0, 1.0]))
