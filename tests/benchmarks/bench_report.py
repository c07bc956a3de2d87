"""What a whole report takes: processor seconds and peak memory of each part, chapter by chapter.

Run ``python -m tests.benchmarks.bench_report [TRIALS] [--models=6] [--conditions=5] [--fits] [--planned] [--without-models]
[--chapter=NAME …] [--study=FOLDER]``; 1,000,000 trials by default: half of them are people's, half the language models' (the study of
``bench_analysis``). Peaks are of the process, the trials table included, and are set back between parts where the system lets a
process do so (Linux); elsewhere they are the peak so far. ``--fits`` prints every mixed model with its rows, parameters,
evaluations and processor seconds. ``--planned`` takes the report's models for planned ones, which have all of their rows.
``--without-models`` leaves out the models that the report starts with, and with them what
chapters say of these; ``--chapter`` (repeatable) leaves out all chapters but those named. ``--study`` takes the tables of a folder
(an export, or the demo's ``handover``). Seconds of the Answer count from the start, with imports and loading.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch


def peak() -> float:
    """Return the peak megabytes of this process since it was last set back."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(one for one in status.read_text().splitlines() if one.startswith("VmHWM"))
        return float(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def set_back() -> None:
    """Let the peak start anew from what is held now, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def measured(name: str, step: Callable[[], Any]) -> Any:
    """Run a step and print its processor seconds and its peak."""
    set_back()
    begun = time.process_time()
    found = step()
    print(f"{name:<34}{time.process_time() - begun:>9.1f}{peak():>9.0f}", flush=True)
    return found


def report(
    folder: Path, out: Path, *, models: bool = True, planned: bool = False, wanted: Collection[str] = ()
) -> None:
    """Write the report of a handover, measuring each part; ``wanted`` names the only chapters, if any."""
    begun = time.process_time()
    from analysis import load
    from analysis.plan import Plan
    from analysis.plan_runner import carry_out_all
    from analysis.report import content
    from analysis.report.write import write_files

    def told(step: str) -> None:
        if step.startswith("Answer"):
            print(
                f"{'Answer, from the start':<34}{time.process_time() - begun:>9.1f}{peak():>9.0f}", flush=True
            )
            _measure_chapters(wanted)

    def fitted(plans: Iterable[Plan], *given: Any) -> Any:
        taken = [replace(plan, planned=planned) for plan in plans] if models else []
        return measured("models", lambda: carry_out_all(taken, *given))

    tables = measured("load", lambda: load(folder))
    with patch.object(content, "carry_out_all", fitted):
        gathered = measured("all but files", lambda: content.gather(tables, told))
    measured("files", lambda: write_files(gathered, out, datetime(2026, 11, 22, tzinfo=UTC)))


def _measure_chapters(wanted: Collection[str]) -> None:
    """Have each chapter measured; they are imported only after the Answer."""
    from analysis.report import chapters

    def timed(one: chapters.Declared) -> chapters.Declared:
        write = one.write
        return replace(one, write=lambda material: measured(f"chapter: {one.name}", lambda: write(material)))

    found = [timed(one) for one in chapters.declared() if not wanted or one.name in wanted]
    chapters.declared = lambda: found


def each_fit_told() -> AbstractContextManager[object]:
    """Print every mixed model that takes a second or more, as it is fitted."""
    from analysis.mixed import fitting

    plain = fitting.fit_model

    def timed(model: Any, **how: Any) -> Any:
        begun = time.process_time()
        found = plain(model, **how)
        seconds = time.process_time() - begun
        if seconds >= 1.0:
            state = "converged" if found.converged else "did not converge"
            size = f"{found.nobs:,} rows, {found.n_parameters} parameters, {found.evaluations} evaluations"
            singular = ", singular" if found.singular else ""
            print(f"  {seconds:.1f} s, {size}, {state}{singular}: {found.formula}", flush=True)
        return found

    return patch.object(fitting, "fit_model", timed)


def main(given: list[str]) -> None:
    """Print the table."""
    numbers = [one for one in given if one.isdigit()]
    trials = int(numbers[0]) if numbers else 1_000_000

    def told(option: str) -> list[str]:
        return [one.removeprefix(f"--{option}=") for one in given if one.startswith(f"--{option}=")]

    models, conditions = int((told("models") or ["6"])[0]), int((told("conditions") or ["5"])[0])
    with (
        tempfile.TemporaryDirectory() as place,
        each_fit_told() if "--fits" in given else contextlib.nullcontext(),
    ):
        folder = Path(*told("study") or [place])
        if folder == Path(place):
            from tests.benchmarks.bench_analysis import write_study

            write_study(folder, trials, models, conditions)
            print(f"{trials:,} trials, {models} models, {conditions} conditions")
        print(f"{'part':<34}{'CPU s':>9}{'peak MB':>9}")
        with_models = "--without-models" not in given
        planned = "--planned" in given
        report(folder, Path(place) / "reports", models=with_models, planned=planned, wanted=told("chapter"))


if __name__ == "__main__":
    main(sys.argv[1:])
