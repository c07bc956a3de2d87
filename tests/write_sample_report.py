"""Makes docs/sample-report again: ``python -m tests.write_sample_report ../shared/data/tl_lexical_decision/trials.csv``.

People's lexical decisions are imported, a very small model is trained and judges the same strings in the same order, and
``wrods report`` writes on both. It takes some 15 minutes of one core. Kept are figures and numbers: the data set states
no licence, so that neither its strings nor its trials may stand in the project.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import pandas as pd
from click.testing import CliRunner

from analysis import load
from analysis.report import write_report
from experiment.cli import main
from experiment.cli.study_store import opened_study
from experiment.exporting.export import hand_over
from tests.sample.keeping import keep, number_items, strings_in
from tests.sample.letter_judge import train_judge

ROOT = Path(__file__).resolve().parent.parent
STUDY = ROOT / "tests" / "sample" / "study"
KEPT = ROOT / "docs" / "sample-report"


def make(table: Path, work: Path) -> Path:
    """Take the whole way from a table of people's answers to a report.

    Parameters
    ----------
    table : Path
        ``trials.csv`` of the data set.
    work : Path
        Where study, model and report are made; steps that were done there already are not done again.

    Returns
    -------
    Path
        The report's folder.
    """
    study = work / "lexical"
    if not study.exists():
        shutil.copytree(STUDY, study)
    if not (study / "judge" / "trained.json").exists():
        given = pd.read_csv(table, usecols=["string", "base"])
        train_judge(study / "judge", {*given["string"], *given["base"]})
    _wrods("import", study, table, "--mapping", study / "import.yaml")
    _wrods("run", study, "--not-registered")
    with opened_study(study) as opened:
        data = hand_over(opened.study, opened.store, work / "handed-over")
    number_items(data)
    return write_report(load(data), work / "reports", datetime.now().astimezone(), _say).parent


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


def _wrods(*given: object) -> None:
    _say(f"wrods {given[0]}")
    done = CliRunner().invoke(main, [str(one) for one in given])
    if done.exit_code:
        raise SystemExit(done.output)


def _make_and_keep(table: Path) -> None:
    given = pd.read_csv(table, usecols=["string", "base"])
    with tempfile.TemporaryDirectory() as work:
        keep(make(table, Path(work)), KEPT)
    told = list(strings_in(KEPT, {*given["string"], *given["base"]}))
    for path, string in told:
        print(f"{path.relative_to(ROOT)} holds {string!r}", file=sys.stderr)
    if told:
        raise SystemExit("The report holds strings of the data set; it is not to be kept as it is.")


if __name__ == "__main__":
    _make_and_keep(Path(sys.argv[1]))
