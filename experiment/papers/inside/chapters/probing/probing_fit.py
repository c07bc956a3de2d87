"""Probes of one layer: settings, cost, and a ridge-penalised logistic regression from hidden states to labels."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

NONE = "none"
CONDITION = "condition"
TARGETS = {"answer": "the right answer", "response": "the model's own answer", CONDITION: "the condition"}
"""What a probe may predict, by the study's word for it."""
PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FOLDS, INNER_FOLDS, CONTROLS = 5, 3, 5


@dataclass(frozen=True)
class Settings:
    """Settings of the probes."""

    predict: tuple[str, ...] = ("answer",)  # of `TARGETS`
    folds: int | None = None
    test: tuple[str, ...] = ()
    keep_together: tuple[str, ...] = ()
    penalties: tuple[float, ...] = PENALTIES
    controls: int = CONTROLS  # control tasks with random labels


def settings_of(declared: Mapping[str, Any] | str | None) -> Settings | None:
    """Read what a study says; None where it wants no probing."""
    if declared == NONE:
        return None
    if declared is None or isinstance(declared, str):
        return Settings()
    if "folds" in declared and "test" in declared:
        raise UserError(
            "analysis.probing names both `folds:` and `test:`",
            mend="Give the number of folds, or the splits of the data set that test.",
        )
    return Settings(
        predict=_texts(declared.get("predict")) or ("answer",),
        folds=declared.get("folds"),
        test=_texts(declared.get("test")),
        keep_together=_texts(declared.get("keep_together")),
        penalties=tuple(sorted(float(penalty) for penalty in declared.get("penalties") or PENALTIES)),
        controls=int(declared.get("controls", CONTROLS)),
    )


def _texts(declared: Any) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    if declared is None:
        return ()
    return (declared,) if isinstance(declared, str) else tuple(str(name) for name in declared)


States = NDArray[np.float32]
Codes = NDArray[np.intp]
Read = Callable[[Codes], States]

UNTESTED = -1
TOLERANCE, MOST_ITERATIONS = 1e-6, 2000
WORSE_BEFORE_STOP = 2
"""The search for a penalty ends when so many weaker ones in a row predict worse."""
MOST_CELLS = 2**28
"""Training rows times width that are held at a time: 1 GiB."""
IN_64_BITS = 2**25
"""Largest number of cells of a training matrix in 64 bits; larger ones use 32."""
_AT_ONCE = 4096
_LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows."""

    train: Codes  # places of rows
    test: Codes
    inner: Codes  # shape (len(train),): the fold of each training row in the choice of the penalty


@dataclass(frozen=True, eq=False)
class ProbedLayer:
    """The result of one layer's probe."""

    predicted: NDArray[np.int16]
    controls: NDArray[np.int16]
    penalties: NDArray[np.float64]  # shape (splits,): the chosen inverse strength C of each split
    trained: NDArray[np.float64]  # shape (splits,): share of training rows that the probe gets right
    trained_controls: NDArray[np.float64]
    fits: int  # regressions, and those that reached the most iterations
    unconverged: int
    clipped: int  # training cells that did not fit into 16 bits when the states were kept, over the splits


def probe_layer(
    read: Read, labels: Codes, control_labels: Codes, splits: Sequence[Split], penalties: Sequence[float]
) -> ProbedLayer:
    """Train and test the probe of one layer."""
    predicted = np.full(len(labels), UNTESTED, dtype=np.int16)
    controls = np.full((len(control_labels), len(labels)), UNTESTED, dtype=np.int16)
    chosen, trained, trained_controls = [], [], []
    count: Counter[str] = Counter()
    for split in splits:
        space, z = _standardised(read(split.train))
        count["clipped"] += space.clipped
        y = labels[split.train]
        c, start = _choose(z, y, split.inner, penalties, count)
        probe = _fitted(z, y, c, start, count)
        chosen.append(c)
        trained.append(float(np.mean(probe.predict(z) == y)))
        labels_of = [control[split.train] for control in control_labels]
        others = [_fitted(z, control, c, None, count) for control in labels_of]
        learnt = [
            float(np.mean(other.predict(z) == control))
            for other, control in zip(others, labels_of, strict=True)
        ]
        trained_controls.append(learnt)
        del z
        for first in range(0, len(split.test), _AT_ONCE):
            batch = split.test[first : first + _AT_ONCE]
            rows = space.of(read(batch))
            predicted[batch] = probe.predict(rows)
            for index, other in enumerate(others):
                controls[index, batch] = other.predict(rows)
    return ProbedLayer(
        predicted,
        controls,
        np.array(chosen),
        np.array(trained),
        np.array(trained_controls).reshape(len(splits), len(control_labels)),
        count["fits"],
        count["unconverged"],
        count["clipped"],
    )


@dataclass(frozen=True, eq=False)
class _Space:
    """Standardises rows as the training rows were, in the basis in which these are written."""

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    basis: NDArray[np.floating] | None
    kind: type[np.floating[Any]]
    clipped: int

    def of(self, rows: States) -> NDArray[np.floating]:
        _clip(rows)
        rows -= self.mean
        rows /= self.scale
        scaled = rows.astype(self.kind, copy=False)
        return scaled if self.basis is None else scaled @ self.basis


def _standardised(rows: States) -> tuple[_Space, NDArray[np.floating]]:
    """Standardise the training rows in place and return how, and them in the basis that is worked in."""
    clipped = _clip(rows)
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    rows -= mean
    scale = np.sqrt(np.einsum("ij,ij->j", rows, rows, dtype=np.float64) / len(rows)).astype(np.float32)
    scale[(scale <= 1e-7 * np.abs(mean)) | (scale == 0.0)] = 1.0
    rows /= scale
    n, width = rows.shape
    small = 2 * n <= width
    cells = n * (n if small else width)
    kind: type[np.floating[Any]] = np.float64 if cells <= IN_64_BITS else np.float32
    if not small:
        return _Space(mean, scale, None, kind, clipped), rows.astype(kind, copy=False)
    basis, upper = np.linalg.qr(rows.T.astype(kind))
    return _Space(mean, scale, basis, kind, clipped), np.ascontiguousarray(upper.T)


def _clip(rows: States) -> int:
    """Give cells that were too large for 16 bits the largest number that fits; return how many."""
    finite = np.isfinite(rows)
    if finite.all():
        return 0
    np.nan_to_num(rows, copy=False, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)
    return int((~finite).sum())


def _choose(
    z: NDArray[np.floating], y: Codes, inner: Codes, penalties: Sequence[float], count: Counter[str]
) -> tuple[float, LogisticRegression | None]:
    """Return the C with the smallest mean log loss over the inner folds, and a fit from which the last one may start."""
    folds = [fold for fold in np.unique(inner) if len(np.unique(y[inner != fold])) > 1]
    if len(penalties) == 1 or len(folds) < 2:
        return float(penalties[len(penalties) // 2]), None
    models: dict[Any, LogisticRegression | None] = dict.fromkeys(folds)
    best, best_loss, best_model, worse = float(penalties[0]), np.inf, None, 0
    for c in penalties:
        losses = []
        for fold in folds:
            models[fold] = model = _fitted(z[inner != fold], y[inner != fold], c, models[fold], count)
            held_out = inner == fold
            losses.append(_log_loss(model, z[held_out], y[held_out]))
        loss = float(np.mean(losses))
        if loss < best_loss:
            best, best_loss, best_model, worse = float(c), loss, models[folds[0]], 0
        else:
            worse += 1
            if worse == WORSE_BEFORE_STOP:
                break
    return best, best_model


def _fitted(
    z: NDArray[np.floating], y: Codes, c: float, start: LogisticRegression | None, count: Counter[str]
) -> LogisticRegression:
    """Fit one regression; a start only saves iterations."""
    if len(np.unique(y)) == 1:
        from sklearn.dummy import DummyClassifier

        return DummyClassifier(strategy="most_frequent").fit(z, y)
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=c, tol=TOLERANCE, max_iter=MOST_ITERATIONS, warm_start=True)
    if start is not None and np.array_equal(start.classes_, np.unique(y)):
        model.coef_, model.intercept_, model.classes_ = start.coef_, start.intercept_, start.classes_
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(z, y)
    count["fits"] += 1
    count["unconverged"] += any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return model


def _log_loss(model: LogisticRegression, z: NDArray[np.floating], y: Codes) -> float:
    """Return the mean log loss; a label that was not trained on counts as the smallest number of the type."""
    probabilities = model.predict_proba(z)
    index = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    least = np.finfo(probabilities.dtype).eps
    share = np.where(model.classes_[index] == y, probabilities[np.arange(len(y)), index], least)
    return float(-np.mean(np.log(np.maximum(share, least))))


SECONDS_A_CELL = 6e-8
"""Seconds of one core for a training row's dimension in one regression: 4.5e-8 to 9.3e-8 (tests/benchmarks/bench_probing.py)."""


def probing_seconds(trials: int, layers: int, width: int, settings: Settings) -> float:
    """Return about how many seconds of one core the probes of a study take."""
    folds = 1 if settings.test else settings.folds or FOLDS
    trained = trials * (folds - 1) / folds if folds > 1 else trials
    regressions = folds * (INNER_FOLDS * len(settings.penalties) + 1 + settings.controls)
    return len(settings.predict) * layers * regressions * trained * width * SECONDS_A_CELL


def probing_bytes(trials: int, width: int) -> float:
    """Return about how many bytes the training rows of one layer take at once: themselves, and two thirds of them in inner folds."""
    cells = min(trials * width, MOST_CELLS)
    return cells * (4 + 8 + 16 / 3 if cells <= IN_64_BITS else 4 + 8 / 3)
