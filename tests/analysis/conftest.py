"""Export folders of a small letter-position study, and one full report of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis import Tables, load, plan_runner
from analysis.plan_runner import carry_out_all
from analysis.planned import plans
from analysis.report import chapters
from analysis.report import content as report_content
from analysis.report.content import gather
from analysis.report.numbering import ReportContent
from analysis.report.write import write_files
from analysis.results import Analysis
from tests.analysis.letter_study import PLANNED, TRUTH, study_rows, write_handover

Make = Callable[..., Path]


def planned_analyses(tables: Tables, *, companion: bool = True) -> list[Analysis]:
    """Carry out what a study plans, not what is explored; ``companion=False`` leaves out the mixed models that check shares."""
    with nullcontext() if companion else no_companions():
        return carry_out_all([plan for plan in plans(tables) if plan.planned], tables)


@pytest.fixture
def handover(tmp_path: Path) -> Make:
    """Return a function that writes the handover of a study with given readers and dictionary entries."""

    def make(
        rows: pd.DataFrame | None = None, *, dictionary: dict[str, Any] | None = None, **readers: Any
    ) -> Path:
        trials = study_rows(**readers) if rows is None else rows
        return write_handover(tmp_path / "handover", trials, **(dictionary or {}))

    return make


@pytest.fixture(scope="module")
def without_chapters() -> Iterator[None]:
    """Leave the chapters out of every report of a module: they have tests and studies of their own, and cost minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chapters, "declared", lambda: ())
        yield


@contextmanager
def no_figures_of_means() -> Iterator[None]:
    """Leave the figures of means and costs out of reports: drawing takes longer than the analyses of a small study."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_content, "figures_of", lambda *_: ())
        yield


@pytest.fixture
def without_figures() -> Iterator[None]:
    with no_figures_of_means():
        yield


@contextmanager
def no_companions() -> Iterator[None]:
    """Fit no mixed models that check differences in shares: a test of these differences alone needs none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_runner, "_of_people", lambda *_: None)
        yield


@pytest.fixture
def without_companions() -> Iterator[None]:
    with no_companions():
        yield


@dataclass(frozen=True)
class Rehearsal:
    """A study with simulated readers, a model, baselines and a pilot visitor, and its report."""

    tables: Tables
    content: ReportContent
    page: Path
    html: str


@pytest.fixture(scope="session")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    folder = tmp_path_factory.mktemp("rehearsal")
    readers: dict[str, Any] = {"models": ("restorer",), "baselines": ("random", "oracle"), "pilot": True}
    rows = study_rows(simulated=16, items=16, **readers)
    exclude = {"trials": {"reading_time": "outside 200 ms to 60 s"}}
    tables = load(write_handover(folder / "handover", rows, truth=TRUTH, planned=PLANNED, exclude=exclude))
    with pytest.MonkeyPatch.context() as patch:
        # chapters have tests and studies of their own
        patch.setattr(chapters, "declared", lambda: ())
        content = gather(tables)
    page = write_files(content, folder / "reports", datetime(2026, 11, 21, 10, 0, tzinfo=UTC))
    return Rehearsal(tables, content, page, page.read_text("utf-8"))
