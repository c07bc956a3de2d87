"""Bootstraps in several processes and in files: the same numbers as in one process at one go."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import Fit, bootstrap, fit
from stimuli.errors import UserError


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    n = 240
    person = np.repeat(np.arange(12), 20)
    frame = pd.DataFrame({"person": person, "x": rng.normal(size=n), "cond": rng.choice(["lo", "hi"], n)})
    lift = rng.normal(0, 1, 12)[person] + 0.8 * frame["x"] + 0.5 * (frame["cond"] == "lo")
    frame["correct"] = (rng.random(n) < 1 / 3 + 2 / 3 / (1 + np.exp(-lift))).astype(int)
    frame["rt"] = 6 + 0.1 * lift + rng.normal(0, 0.3, n)
    return frame


@pytest.fixture(scope="module")
def found(data: pd.DataFrame) -> Fit:
    return fit("correct ~ scale(x) + cond + (1 | person)", data, "binomial", "guess(1/3)")


def standard_errors(again: Fit) -> list[float]:
    return [float(v) for v in again.fixed["se"]]


def test_two_processes_give_what_one_gives(found: Fit) -> None:
    names = list(found.fixed["term"])
    alone, both = (
        bootstrap(found, 4, seed=2, processes=processes, statistic=standard_errors, names=names)
        for processes in (1, 2)
    )
    assert (alone.replicates == both.replicates).all()
    assert (alone.failed, alone.unconverged, alone.singular) == (both.failed, both.unconverged, both.singular)


def test_an_interrupted_bootstrap_goes_on(found: Fit, tmp_path: Path) -> None:
    file, told = tmp_path / "refits.jsonl", list[tuple[int, int]]()
    bootstrap(found, 5, keep=file)
    file.write_text(file.read_text()[:-9])
    more = bootstrap(found, 8, keep=file, progress=lambda done, total: told.append((done, total)))
    assert told == [(4, 8), (5, 8), (6, 8), (7, 8), (8, 8)]
    np.testing.assert_array_equal(more.replicates, bootstrap(found, 8).replicates)
    assert len(file.read_text().splitlines()) == 9
    fewer = bootstrap(found, 3, keep=file)
    np.testing.assert_array_equal(fewer.replicates, more.replicates[:3])


def test_refits_that_failed_or_have_no_number_are_kept_as_such(data: pd.DataFrame, tmp_path: Path) -> None:
    linear = fit("rt ~ x + (1 | person)", data)
    calls = []

    def fragile(again: Fit) -> list[float]:
        calls.append(again)
        if len(calls) == 3:
            raise UserError("this refit has no answer")
        return [again.sigma, np.nan]

    file = tmp_path / "refits.jsonl"
    drawn = bootstrap(linear, 6, statistic=fragile, keep=file)
    read = bootstrap(linear, 6, statistic=fragile, keep=file)
    assert len(calls) == 8  # Six refits, and twice the fit itself.
    assert drawn.failed == read.failed == 1
    np.testing.assert_array_equal(drawn.replicates, read.replicates)
    assert np.isnan(read.replicates[:, 1]).all()


def test_a_file_of_other_refits_is_refused(found: Fit, data: pd.DataFrame, tmp_path: Path) -> None:
    file = tmp_path / "refits.jsonl"
    bootstrap(found, 2, seed=1, keep=file)
    before = file.read_text()
    other = fit("correct ~ scale(x) + cond + (1 | person)", data.iloc[1:], "binomial", "guess(1/3)")
    for asked, seed, statistic in ((found, 2, None), (other, 1, None), (found, 1, standard_errors)):
        with pytest.raises(UserError, match=re.escape(str(file))):
            bootstrap(asked, 2, seed=seed, statistic=statistic, keep=file)
    assert file.read_text() == before
    broken = tmp_path / "notes.txt"
    broken.write_text("my notes\n")
    with pytest.raises(UserError, match=re.escape(str(broken))):
        bootstrap(found, 2, keep=broken)
    assert broken.read_text() == "my notes\n"
    with pytest.raises(UserError, match="nowhere"):
        bootstrap(found, 2, keep=tmp_path / "nowhere" / "refits.jsonl")


def test_what_cannot_work_is_refused_before_any_refit(found: Fit) -> None:
    with pytest.raises(UserError, match="lambda"):
        bootstrap(found, 2, processes=2, statistic=lambda again: [again.sigma])
    with pytest.raises(UserError, match="processes is 0"):
        bootstrap(found, 2, processes=0)
    with pytest.raises(UserError, match=r"\b2 names.*\b3\b"):
        bootstrap(found, 2, statistic=standard_errors, names=["a", "b"])
