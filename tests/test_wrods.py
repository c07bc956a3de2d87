"""``import wrods``: the page of the public interface runs, next to a user's own packages of the names that wrods uses inside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

OWN = """
import sys, analysis, stimuli
assert analysis.OWN and stimuli.OWN
assert not [name for name in sys.modules if name.startswith(("analysis.", "stimuli.", "experiment"))]
from wrods.experiment.cli import main
main(["fit", "trials.csv", "--formula", "rt ~ cond + (1 | participant)"], standalone_mode=False)
"""


def test_the_page_of_the_python_interface_runs_beside_packages_of_the_same_names(tmp_path: Path) -> None:
    (tmp_path / "analysis").mkdir()
    for file in ("analysis/__init__.py", "stimuli.py", "experiment.py"):
        (tmp_path / file).write_text("OWN = True\n", "utf-8")
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    program = "\n".join([*blocks, 'trials.to_csv("trials.csv", index=False)', OWN])
    (tmp_path / "script.py").write_text(program, "utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "initial / intact" in done.stdout
    assert "REML" in done.stdout and "rt ~ cond + (1 | participant)" in done.stdout
    assert (tmp_path / "means.png").stat().st_size > 5_000


def test_importing_wrods_imports_nothing_heavy() -> None:
    code = "import sys, wrods; sys.exit(bool({'numpy', 'pandas', 'click'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert done.returncode == 0
