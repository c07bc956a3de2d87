"""Probes find what is planted in hidden states, where it is planted, and nothing where nothing is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from analysis import load
from experiment.papers.inside.chapters.probing import probes as probing
from experiment.papers.inside.chapters.probing.probes import Probing, probings
from experiment.papers.inside.chapters.probing.probing_fit import Split, probe_layer
from experiment.papers.inside.chapters.probing.probing_intervals import ALL, accuracies
from stimuli.errors import UserError
from tests.analysis.inside.probing_study import LEVELS, probing_study

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def probed(data: Path) -> Probing:
    found, failed = probings(load(data))
    assert not failed and len(found) == 1
    return found[0]


def test_an_answer_is_found_in_the_layers_and_conditions_where_it_is_planted_and_nowhere_else(
    tmp_path: Path,
) -> None:
    data = probing_study(
        tmp_path,
        items=150,
        layers=4,
        from_layer={"base": 1, "mild": 3},
        strength=5.0,
        probing={"penalties": [1e-3, 1e-2], "controls": 1},
    )
    one = probed(data)
    assert one.classes == ("A", "B", "C") and one.conditions == LEVELS
    found = accuracies(one, "planted")
    assert found.names == (*LEVELS, ALL) and found.trials.tolist() == [150, 150, 150, 450]
    value, chance = found.accuracy.value, 1 / 3
    assert found.chance == pytest.approx(chance)
    planted = np.array([[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=bool)
    assert (value[:3][planted] > 0.7).all(), value
    assert (np.abs(value[:3][~planted] - chance) < 0.13).all(), value
    above = found.accuracy.low_all[:3] > chance
    assert (above == planted).all(), "simultaneous intervals say the same"
    assert found.steps.low_all[0, 0] > 0.2 and found.steps.low_all[1, 2] > 0.2
    assert found.against.high_all[0, 1] < -0.2 and found.against.high_all[1, 3] < -0.2
    assert (np.abs(found.selectivity.value - (value - found.control.value)) < 1e-12).all()


def test_chance_of_a_condition_that_is_predicted_is_how_often_the_probe_takes_a_trial_for_it(
    tmp_path: Path,
) -> None:
    """If states are the same in all trials, the probe gives one label throughout and is right by chance in all trials of it."""
    data = probing_study(
        tmp_path, items=60, layers=3, probing={"predict": ["condition"], "penalties": [0.01], "controls": 0}
    )
    (states,) = (tmp_path / "states").iterdir()
    index = pd.read_parquet(states / "index.parquet").set_index("row")["work_key"]
    same, told = (np.load(states / f"layer_0{number}.npy", mmap_mode="r+") for number in (0, 2))
    same[:] = 1.0
    for row, key in index.items():
        told[row, LEVELS.index(key.split("-")[-1])] += 20.0
    same.flush(), told.flush()
    found = accuracies(probed(data), "planted")
    of_same = found.accuracy.value[:3, 0]
    assert sorted(of_same) == [0, 0, 1] and (found.chance[:3, 0] == of_same).all()
    assert found.chance[:3, 2] == pytest.approx(1 / 3) and found.chance[3] == pytest.approx(1 / 3)
    above = found.accuracy.low_all[:3] > found.chance[:3]
    assert above.tolist() == [[False, False, True]] * 3


def test_where_all_are_right_the_interval_is_wilsons_of_the_number_of_items(tmp_path: Path) -> None:
    split = ("train", "test")
    data = probing_study(
        tmp_path, items=60, layers=1, from_layer={"base": 0}, strength=60.0, split=split,
        probing={"test": ["test"], "penalties": [0.1], "controls": 0},
    )  # fmt: skip
    found = accuracies(probed(data), "planted")
    assert found.accuracy.value[0, 0] == 1.0 and found.accuracy.high[0, 0] == 1.0
    wilson = binomtest(30, 30).proportion_ci(0.95, "wilson").low
    assert found.accuracy.low[0, 0] == pytest.approx(wilson) and found.accuracy.low_all[0, 0] <= wilson
    assert "Wilson's" in found.intervals


def test_probes_that_judge_every_item_alike_may_differ_in_as_many_items_as_the_sample_leaves_open(
    tmp_path: Path,
) -> None:
    split = ("train", "test")
    data = probing_study(
        tmp_path, items=60, layers=3, from_layer=dict.fromkeys(("base", "mild"), 1), strength=60.0, split=split,
        probing={"test": ["test"], "penalties": [0.1], "controls": 2},
    )  # fmt: skip
    found = accuracies(probed(data), "planted")
    assert (found.accuracy.value[:2, 1:] == 1).all() and (found.accuracy.value[:2, 0] < 1).all()
    open_to = binomtest(0, 30).proportion_ci(0.95, "wilson").high
    for part, at in ((found.steps, (0, 1)), (found.against, (0, 2))):
        assert part.unmoved[at] and part.value[at] == 0
        assert (part.low[at], part.high[at]) == pytest.approx((-open_to, open_to))
        assert part.low_all[at] <= part.low[at] and part.high_all[at] >= part.high[at]
    risen = (found.steps.low[0, 0], found.steps.low_all[0, 0])
    assert not found.steps.unmoved[0, 0] and min(risen) > 0, "a step that items vouch for keeps its bootstrap"
    assert "Wilson" in found.intervals


def test_whoever_lets_an_item_into_training_and_test_would_see_it_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is planted, but items about one passage share both their states and their answer."""
    settings = {"penalties": [1e-2], "controls": 0}
    data = probing_study(tmp_path, items=120, passages=40, layers=2, common=3.0, width=60, probing=settings)
    kept_together = accuracies(probed(data), "planted").accuracy.value[-1]
    assert (np.abs(kept_together - 1 / 3) < 0.12).all(), kept_together
    for families, least in (
        (lambda rows, items, together: np.unique(rows["item_id"], return_inverse=True)[1], 0.5),
        (lambda rows, items, together: np.arange(len(rows)), 0.75),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(probing, "families_of", families)
            leaking = accuracies(probed(data), "planted").accuracy.value[-1]
        assert (leaking > least).all(), leaking


@pytest.mark.full
def test_a_control_task_is_at_chance_on_held_out_items_and_learnt_on_those_that_train(tmp_path: Path) -> None:
    data = probing_study(
        tmp_path, items=90, layers=2, width=120, common=1.0, from_layer={"base": 0, "mild": 0, "severe": 0},
        strength=9.0, probing={"penalties": [0.01], "controls": 10},
    )  # fmt: skip
    one = probed(data)
    found = accuracies(one, "planted")
    assert found.control.value[-1] == pytest.approx(1 / 3, abs=0.05), found.control.value
    assert (found.control.low_all[-1] < 1 / 3).all() and (found.control.high_all[-1] > 1 / 3).all()
    assert all(layer.trained_controls.mean() > 0.8 for layer in one.layers), "a probe this large can memorise"
    assert (found.selectivity.low_all[-1] > 0.2).all()
    labels = {}
    for task in range(len(one.controls)):
        for place, label in zip(one.family, one.controls[task], strict=True):
            assert labels.setdefault((task, place), label) == label, "constant over an item's conditions"
        assert np.bincount(one.controls[task]).tolist() == np.bincount(one.label).tolist()


@pytest.mark.full
@pytest.mark.parametrize(("rows", "width"), [(120, 20), (60, 300)])
def test_numbers_are_those_of_a_plain_scikit_learn_pipeline(rows: int, width: int) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import StandardScaler

    random = np.random.default_rng(rows)
    y = random.integers(0, 3, rows)
    x = (random.normal(size=(rows, width)) * random.uniform(0.1, 9, width) + 5).astype(np.float32)
    x += 3 * np.eye(3, width, dtype=np.float32)[y]
    x[:, 7] = 2.5
    fold = np.arange(rows) % 4
    parts = [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in range(4)]
    splits = [Split(train, test, np.arange(len(train)) % 3) for train, test in parts]
    control = random.permutation(y)
    ours = probe_layer(lambda places: x[places], y, control[None, :], splits, PENALTIES)
    for number, split in enumerate(splits):
        scaler = StandardScaler().fit(x[split.train].astype(float))
        z = scaler.transform(x[split.train].astype(float))
        inner = [(np.flatnonzero(split.inner != k), np.flatnonzero(split.inner == k)) for k in range(3)]
        plain = LogisticRegression(tol=1e-8, max_iter=5000)
        search = GridSearchCV(plain, {"C": list(PENALTIES)}, scoring="neg_log_loss", cv=inner).fit(
            z, y[split.train]
        )
        test = scaler.transform(x[split.test].astype(float))
        assert ours.penalties[number] == search.best_params_["C"]
        assert (ours.predicted[split.test] == search.predict(test)).all()
        assert ours.trained[number] == pytest.approx(search.best_estimator_.score(z, y[split.train]))
        shuffled = plain.set_params(C=search.best_params_["C"]).fit(z, control[split.train])
        assert (ours.controls[0, split.test] == shuffled.predict(test)).all()
        assert ours.trained_controls[number, 0] == pytest.approx(shuffled.score(z, control[split.train]))
    assert ours.unconverged == 0


def test_layers_that_are_kept_are_not_computed_again_and_a_stop_loses_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = probing_study(tmp_path, items=30, layers=4, probing={"penalties": [1e-2], "controls": 1})
    done: list[int] = []
    whole = probing.probe_layer

    def counted(*given: object) -> object:
        done.append(1)
        if len(done) == 3:
            raise KeyboardInterrupt
        return whole(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(probing, "probe_layer", counted)
    with pytest.raises(KeyboardInterrupt):
        probings(load(data))
    kept = sorted(path.name for path in (tmp_path / "states" / "run-1" / "results").glob("*/*"))
    assert kept == ["layer_00.npz", "layer_01.npz"]
    told: list[str] = []
    first, _ = probings(load(data), told.append)
    assert len(done) == 5 and len(told) == 2
    assert all(f"layer {layer} of 3" in one for layer, one in zip((2, 3), told, strict=True))
    again, _ = probings(load(data), told.append)
    assert len(done) == 5 and len(told) == 2, "nothing is computed a second time"
    for one, other in zip(first[0].layers, again[0].layers, strict=True):
        assert (one.predicted == other.predicted).all() and (one.controls == other.controls).all()
    damaged = next((tmp_path / "states" / "run-1" / "results").glob("*/layer_01.npz"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    third, _ = probings(load(data))
    assert len(done) == 6 and (third[0].layers[1].predicted == first[0].layers[1].predicted).all()


def test_items_of_the_training_split_train_and_all_others_test(tmp_path: Path) -> None:
    def made(*split: str, **more: object) -> Path:
        settings = {"penalties": [0.01], "controls": 1, **more}
        folder = tmp_path / "-".join((*split, *more))
        return probing_study(folder, items=90, layers=2, split=split, probing=settings)

    one = probed(made("train", "train", "dev", "train", "test"))
    assert one.dealt.test_splits == ("dev", "test") and len(one.dealt.splits) == 1
    assert int(one.tested.sum()) == 36 * 3 and accuracies(one, "planted").units == 36
    folded = probed(made("train", "dev", folds=3))
    assert folded.tested.all() and len(folded.dealt.splits) == 3
    assert probed(made("train", "dev", "test", test="dev")).dealt.test_splits == ("dev",)
    with pytest.raises(UserError, match="'deev'"):
        probings(load(made("dev", "train", test=["deev"])))


def test_the_models_own_answer_and_the_condition_can_be_predicted(tmp_path: Path) -> None:
    settings = {"penalties": [0.01], "controls": 2, "predict": ["response", "condition"]}
    data = probing_study(tmp_path, items=60, layers=2, probing=settings)
    found, failed = probings(load(data))
    assert not failed and [one.target for one in found] == ["response", "condition"]
    own, condition = found
    trials = own.label
    assert set(own.classes) == {"A", "B", "C"} and len(trials) == 180
    assert condition.classes == LEVELS and (condition.label == condition.condition).all()
    for family in np.unique(condition.family):
        mine = condition.family == family
        assert sorted(condition.controls[0, mine]) == sorted(condition.label[mine]), "shuffled within an item"


@pytest.mark.parametrize(("items", "settings"), [(4, None), (6, {"folds": 7})])
def test_too_few_items_are_told_and_not_probed(
    tmp_path: Path, items: int, settings: dict[str, object] | None
) -> None:
    found, failed = probings(load(probing_study(tmp_path, items=items, layers=2, probing=settings)))
    assert not found and len(failed) == 1 and failed[0].why


@pytest.mark.full
@pytest.mark.parametrize("strength", [0.0, 1.5])
def test_intervals_of_folds_cover_what_they_are_about_as_often_as_they_say(
    tmp_path: Path, strength: float
) -> None:
    """Chance without signal; with one, the accuracy that probes trained on so many items have on average."""
    studies = []
    for seed in range(30):
        data = probing_study(
            tmp_path / str(seed), items=90, layers=2, width=10, seed=seed, strength=strength, planted=1,
            from_layer=dict.fromkeys(LEVELS, 0), probing={"penalties": [0.01], "controls": 0},
        )  # fmt: skip
        studies.append(accuracies(probed(data), "planted", resamples=500))
    parts = {
        "accuracy": 1 / 3 if strength == 0 else np.mean([one.accuracy.value for one in studies], axis=0),
        "steps": np.mean([one.steps.value for one in studies], axis=0) if strength else 0.0,
        "against": 0.0,
    }
    assert all(one.widened == 1.5 for one in studies)
    for name, truth in parts.items():
        found = [getattr(one, name) for one in studies]
        single = [(one.low <= truth) & (one.high >= truth) for one in found]
        assert np.mean(single) >= 0.95, (name, np.mean(single))
        together = sum(bool(((one.low_all <= truth) & (one.high_all >= truth)).all()) for one in found)
        assert binomtest(together, len(found), 0.95, "less").pvalue > 0.01, (name, together)
    if strength == 0:
        falsely = sum(bool((one.accuracy.low_all > one.chance).any()) for one in studies)
        assert binomtest(falsely, len(studies), 0.025, "greater").pvalue > 0.01, falsely


@pytest.mark.full
def test_intervals_of_a_training_split_cover_chance_as_often_as_they_say(tmp_path: Path) -> None:
    covered, together = [], 0
    for seed in range(30):
        data = probing_study(
            tmp_path / str(seed), items=120, layers=2, width=10, seed=seed, split=("train",) * 3 + ("test",) * 3,
            probing={"penalties": [0.01], "controls": 0},
        )  # fmt: skip
        found = accuracies(probed(data), "planted", resamples=500)
        assert found.widened == 1 and found.units == 60
        part = found.accuracy
        covered.append((part.low <= 1 / 3) & (part.high >= 1 / 3))
        together += bool(((part.low_all <= 1 / 3) & (part.high_all >= 1 / 3)).all())
    assert np.mean(covered) >= 0.92, np.mean(covered)
    assert binomtest(together, 30, 0.95, "less").pvalue > 0.01, together


def test_training_takes_drawn_items_where_all_of_them_are_too_many_to_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "MOST_CELLS", 20 * 100)
    data = probing_study(tmp_path, items=60, layers=2, probing={"penalties": [0.01], "controls": 1})
    one = probed(data)
    assert one.dealt.is_thinned and one.dealt.training == 144
    assert all(90 < len(split.train) <= 100 for split in one.dealt.splits) and one.tested.all()
    for split in one.dealt.splits:
        assert not set(one.family[split.train]) & set(one.family[split.test])
