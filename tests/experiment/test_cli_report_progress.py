"""How far a report is: a bar of layers where someone looks, a line now and then elsewhere."""

from __future__ import annotations

import pytest

from analysis.inside.hidden_states import LayersDone
from experiment.cli import report_progress
from experiment.cli.report_progress import ReportProgress

WHAT = "probing net (the right answer)"


def test_elsewhere_a_model_has_its_first_layer_told_and_then_a_line_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 4.0, 11.0, 11.0, 12.0, 12.0])
    monkeypatch.setattr(report_progress.time, "monotonic", lambda: next(clock))
    with ReportProgress() as progress:
        progress("figures")
        for number in range(3):
            progress(LayersDone.before(WHAT, number, 29, 60.0 if number else None))
        progress(LayersDone.before("probing other", 0, 29))
    assert capsys.readouterr().err.splitlines() == [
        "  figures",
        f"  {WHAT}: layer 0 of 28",
        f"  {WHAT}: layer 2 of 28, about 27 min left",
        "  probing other: layer 0 of 28",
    ]


def test_on_a_terminal_each_model_has_a_bar_that_ends_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report_progress.sys.stderr, "isatty", lambda: True, raising=False)
    with ReportProgress() as progress:
        for what in (WHAT, "representations of net"):
            for number in range(4):
                progress(LayersDone.before(what, number, 4))
        progress("files")
    told = capsys.readouterr().err
    assert told.count("4/4") == 2 and WHAT in told and "representations of net" in told
    assert told.rstrip().endswith("files")
