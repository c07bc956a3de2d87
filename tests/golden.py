"""Compare what users get with what they got before: ``python -m tests.golden write|check FOLDER [PART|STUDY …]``.

``write`` keeps in ``FOLDER/base`` what the code in force gives; ``check`` writes the same into ``FOLDER/now`` and prints what differs.
All parts and studies are compared, or those named. The studies are the demo and every template, as published and corrected
(``demo``, ``h-test/tasks/published``, ``h-test/tasks/corrected``; ``h-test`` stands for all of its), with few items. The parts:

items      all files of ``wrods build``
sessions   what pages get: the page, session plans of the first participants, replies to answers
prompts    the first prompt of each kind (``wrods run --dry-run``), as chat, with reasoning and as a completion
requests   the bodies that a server receives, scripted replies, and how the answers are scored
exports    all tables of ``wrods export``
databases  the demo's database, written by the base and in each earlier form: the rows after opening it
reports    numbers, tables, texts and figures of ``wrods report`` with all chapters, of studies in ``FOLDER/studies``

The base of another commit is written by that commit's code, this program and its pages::

    git worktree add --detach /tmp/base COMMIT && cp -r static/dist /tmp/base/static/
    cd /tmp/base && PYTHONPATH=/tmp/base python -P WORKTREE/tests/golden.py write FOLDER

Papers' data are taken from ``$WRODS_SHARED/data``.
"""

from __future__ import annotations

import csv
import difflib
import html
import importlib
import io
import json
import math
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp
from click.testing import CliRunner
from matplotlib.image import imread

RELATIVE = 1e-9
MAX_LINES = 12
"""Printed of the difference of one file."""
ITEMS = 6
PEOPLE = 3
TRIALS = 30
"""Answered by each model."""
PAPERS = ("h-test", "mind-scramble", "scrambled-bench")
"""Templates that take the user's data, and have a corrected form."""
MODELS = {
    "golden-chat": "max_tokens: 40",
    "golden-thinks": "strategy: chain_of_thought",
    "golden-plain": "api: completions",
}
REPLIES = ("A", "B", "Yes.", "The answer is no", "B) because of its letters.", "Two quick 42 ducks")
VOLATILE = {
    *("token", "created_at", "received_at", "last_seen_at", "finished_at", "began_at", "seen_at", "ended_at", "at", "began", "ended"),
    *("completion_code", "run_id", "first_call", "last_call", "minutes"),
    *("wrods", "python", "versions", "host", "pid", "person_key", "salt", "digest", "link", "latency_ms", "ttft_ms"),
}  # fmt: skip
"""Names of fields and columns whose values change from one run to the next, or with the machine."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_CHANGES_DAILY = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T_ ]\d\d[-:]\d\d(?:[-:]\d\d)?)?|\d{1,2} [A-Z][a-z]+ 20\d\d|\b\d+\.\d+\.\d+(?:\.dev\d+\S*)?"
    r"|\b\d\d:\d\d\b|(?<![\w.])(?=\d*[a-f])[0-9a-f]{12,64}\b|\b\d+\s(?:bytes|kB|MB)\b"
)
"""Dates, times, versions, hashes and sizes of files in a report."""
_REPORTED = ["numbers.json", "tables/*.csv", "models/*.csv", "*.R", "*.tex", "report.html", "figures/*.png"]


def _text(markup: str) -> str:
    """Return the text of a page, a line per block."""
    markup = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>", "", markup)
    markup = re.sub(r"</?(?:p|tr|h\d|li|div|table|section|figure)\b[^>]*>", "\n", markup)
    text = html.unescape(re.sub(r"<[^>]+>", " ", markup))
    return "\n".join(line for raw in text.splitlines() if (line := " ".join(raw.split())))


def _masked(value: Any) -> Any:
    """Return JSON with the values of volatile names replaced."""
    if isinstance(value, dict):
        return {
            name: "…" if name in VOLATILE and held is not None else _masked(held)
            for name, held in value.items()
        }
    return [_masked(held) for held in value] if isinstance(value, list) else value


def _as_json(value: Any) -> str:
    return json.dumps(_masked(value), ensure_ascii=False, indent=1, sort_keys=True)


def _as_rows(columns: list[str], rows: list[Any]) -> str:
    """Return a table, a JSON list a row, in an order that does not depend on the database's."""
    masked = [
        [
            "…" if name in VOLATILE and cell not in (None, "") else cell
            for name, cell in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    return "\n".join([", ".join(columns), *sorted(json.dumps(row, ensure_ascii=False) for row in masked)])


def _read(file: Path) -> str:
    """Return what is compared of a file."""
    text = file.read_text("utf-8")
    if file.suffix == ".json":
        return _as_json(json.loads(text))
    if file.suffix == ".jsonl":
        return "\n".join(_as_json(json.loads(line)) for line in text.splitlines())
    if file.suffix == ".csv":
        head, *rows = csv.reader(io.StringIO(text))
        return _as_rows(head, rows)
    return _text(text) if file.suffix == ".html" else text


class Failed(Exception):
    """A command failed."""


class Case:
    """A study of the guard in a working folder, and the folder of what is kept of it."""

    def __init__(self, name: str, work: Path, kept: Path, server: Any) -> None:
        self.name = name
        self.folder = work / name.removesuffix("/published").replace("/", "-")
        self.kept = kept
        self.server = server
        self.models = [*MODELS, *(["restorer"] if name == "demo" else [])]
        self.names: dict[str, str] = {str(work): "WORK", server.url: "SERVER"}
        """Ids drawn by chance and addresses, and what stands for them."""

    def wrods(self, *arguments: str | Path, exits: tuple[int, ...] = (0,)) -> str:
        """Return what a command prints, which has to end as expected."""
        main = importlib.import_module("experiment.cli").main
        drawn = random.Random(self.name.removesuffix("/published"))
        with patch("secrets.token_hex", lambda size=32: drawn.randbytes(size).hex()):
            done = CliRunner().invoke(main, [*map(str, arguments)])
        if done.exit_code not in exits:
            told = (
                done.output
                if isinstance(done.exception, SystemExit)
                else traceback.format_exception(done.exception)
            )
            raise Failed(f"wrods {' '.join(map(str, arguments))}: {''.join(told)[-2000:]}")
        return str(done.stdout)

    def keep(self, part: str, name: str, text: str) -> None:
        """Keep a text, with names for ids drawn by chance."""
        for drawn, stands_for in self.names.items():
            text = text.replace(drawn, stands_for)
        file = self.kept / part / self.name / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def keep_files(self, part: str, folder: Path, paths: list[Path]) -> None:
        for path in paths:
            if path.suffix == ".png":
                kept = self.kept / part / self.name / path.relative_to(folder)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, kept)
            else:
                self.keep(part, str(path.relative_to(folder)), _read(path))

    def make(self) -> None:
        """Make the study with few items and the guard's models."""
        template, *rest = self.name.split("/")
        if template == "demo":
            demo = Path(str(files("experiment.demo")))
            shutil.copytree(demo / "study", self.folder)
            shutil.copytree(demo / "model", self.folder / "model")
        else:
            corrected = ["--corrected"] if "corrected" in rest else []
            part = ["--part", rest[0]] if rest else []
            data = ["--data", f"{os.environ['WRODS_SHARED']}/data"] if template in PAPERS else []
            self.wrods("new", self.folder, "--from", template, *part, *data, *corrected)
        file = self.folder / "study.yaml"
        text = file.read_text("utf-8")
        if template in PAPERS:
            text = re.sub(r"(?m)^(  |    )(?:# )?items: \d+ ", rf"\1items: {ITEMS} ", text)
        models = "".join(
            f'    {name}: {{use: "openai:{name}", base_url: "{self.server.url}", cache: false, concurrency: 1, {more}}}\n'
            for name, more in MODELS.items()
        )
        file.write_text(text.replace("  who:\n", f"  who:\n{models}", 1), "utf-8")

    def items(self) -> None:
        before = {*self.folder.rglob("*")}
        self.keep("items", "build.txt", self.wrods("build", self.folder))
        self.keep_files(
            "items",
            self.folder,
            sorted(path for path in {*self.folder.rglob("*.*")} - before if path.is_file()),
        )

    def sessions(self) -> None:
        """Let simulated readers take part, and keep what passes between page and server."""
        seen: dict[str, list[Any]] = {}
        send = aiohttp.ClientSession._request

        async def record(http: aiohttp.ClientSession, method: str, url: Any, **given: Any) -> Any:
            address = str(url)
            base = address.partition("/api/")[0]
            self.names[base] = "SERVER"
            if not seen:
                page = await send(http, "GET", address.removesuffix("sessions").replace("/api/", "/"))
                seen["page"] = [(await page.text()).splitlines()]
            reply = await send(http, method, url, **given)
            received = await reply.json()
            if address.endswith("/sessions"):
                session = f"session-{len(seen)}"
                self.names[received["session_id"]] = session
                given["json"] = {**given["json"], "pass": "…"}
            else:
                session = self.names[address.split("/")[-2]]
            passed = {
                "path": address.removeprefix(base),
                "sent": given["json"],
                "status": reply.status,
                "received": received,
            }
            seen.setdefault(session, []).append(passed)
            return reply

        with patch.object(aiohttp.ClientSession, "_request", record):
            self.wrods("simulate", self.folder, "--readers", str(PEOPLE))
        for name, passed in seen.items():
            self.keep("sessions", f"{name}.json", _as_json(passed))

    def prompts(self) -> None:
        models = [word for name in self.models for word in ("--model", name)]
        self.keep("prompts", "prompts.txt", self.wrods("run", self.folder, *models, "--dry-run"))

    def requests(self) -> None:
        """Run the models, one after the other, and keep what the scripted server receives."""
        for name in self.models:
            self.server.requests, self.server.probes = [], []
            limits = ["--not-registered", "--max-trials", str(TRIALS), "--json"]
            told = self.wrods("run", self.folder, "--model", name, *limits, exits=(0, 1))
            self.keep("requests", f"{name}.txt", _as_json(json.loads(told)))
            for kind in ("requests", "probes"):
                self.keep(
                    "requests",
                    f"{name}-{kind}.json",
                    _as_json(sorted(getattr(self.server, kind), key=json.dumps)),
                )

    def exports(self) -> None:
        out = self.folder.parent / f"{self.folder.name}-export"
        self.keep("exports", "export.txt", self.wrods("export", self.folder, "--out", out, "--prompts"))
        with closing(sqlite3.connect(self.folder / "study.db")) as database:
            rows = database.execute(
                "SELECT session_id, reader_kind, reader, list_id, replicate, prompt_variant FROM sessions"
            )
            for session_id, *told in sorted(rows, key=str):
                self.names.setdefault(session_id, f"session of {told}")
        self.keep_files("exports", out, sorted(path for path in out.rglob("*.*") if path.is_file()))


def _reply(body: dict[str, Any]) -> str:
    """Return the scripted server's answer, which depends on the prompt alone."""
    prompt = json.dumps([body.get("prompt"), body.get("messages")])
    return REPLIES[zlib.crc32(prompt.encode()) % len(REPLIES)]


STEPS: dict[str, tuple[Callable[[Case], None], frozenset[str]]] = {
    "items": (Case.items, frozenset()),
    "sessions": (Case.sessions, frozenset()),
    "prompts": (Case.prompts, frozenset()),
    "requests": (Case.requests, frozenset()),
    "exports": (Case.exports, frozenset({"sessions", "requests"})),
}
"""What is done with a study, in this order, and what each part needs done before; all need the items."""


def case_names() -> list[str]:
    """Return the demo and all templates with their parts, as ``wrods new --list`` names them."""
    listed = CliRunner().invoke(importlib.import_module("experiment.cli").main, ["new", "--list"]).output
    names: list[str] = []
    parted: dict[str, list[str]] = {}
    for line in listed.splitlines():
        words = line.split()
        if words[0] == "--part":
            parted[next(reversed(parted))].append(words[1])
        else:
            parted[words[0]] = []
    for template, parts in parted.items():
        own = [f"{template}/{part}" for part in parts] or [template]
        forms = ("/published", "/corrected") if template in PAPERS else ("",)
        names += [f"{name}{form}" for name in own for form in forms]
    return ["demo", *names]


def _needed(case: str, parts: set[str]) -> set[str]:
    """Return the steps that parts need done with a study."""
    wanted = parts & STEPS.keys()
    if case == "demo" and "databases" in parts:
        wanted = wanted | {"exports"}
    return (
        wanted | {before for name in wanted for before in STEPS[name][1]} | ({"items"} if wanted else set())
    )


def keep_databases(demo: Case, folder: Path) -> None:
    """Keep the demo's study with its database in each form that a database has had."""
    from experiment.store.database import address_of, make_engine
    from experiment.store.store import MIGRATIONS, upgrade

    revisions = sorted(path.name[:4] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))
    shutil.rmtree(folder, ignore_errors=True)
    for revision in revisions:
        own = shutil.copytree(
            demo.folder, folder / revision, ignore=shutil.ignore_patterns("study.db*", "model", "audit")
        )
        engine = make_engine(address_of(own))
        upgrade(engine, latest=revision)
        engine.dispose()
        with closing(sqlite3.connect(own / "study.db")) as old:
            old.execute("ATTACH ? AS whole", (str(demo.folder / "study.db"),))
            for (table,) in old.execute(
                "SELECT name FROM main.sqlite_master WHERE type = 'table'"
            ).fetchall():
                both = _columns(old, "main", table) & _columns(old, "whole", table)
                if table != "alembic_version" and not table.startswith("sqlite_"):
                    names = ", ".join(f'"{column}"' for column in sorted(both))
                    old.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM whole.{table}")
            old.commit()
    (folder / "names.json").write_text(json.dumps(demo.names), "utf-8")


def _columns(database: sqlite3.Connection, schema: str, table: str) -> set[str]:
    return {row[1] for row in database.execute(f"PRAGMA {schema}.table_info({table})")}


def open_databases(folder: Path, work: Path, kept: Path, server: Any) -> None:
    """Open a copy of each kept database with a command, and keep all its rows."""
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        case = Case(f"demo/{path.name}", work, kept, server)
        case.names |= json.loads((folder / "names.json").read_text("utf-8"))
        shutil.copytree(path, case.folder)
        case.wrods("export", case.folder, "--out", work / f"export-{path.name}")
        with closing(sqlite3.connect(case.folder / "study.db")) as database:
            for (table,) in database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall():
                rows = database.execute(f"SELECT * FROM {table}")
                case.keep(
                    "databases",
                    f"{table}.txt",
                    _as_rows([column[0] for column in rows.description], rows.fetchall()),
                )


def keep_report(study: Path, folder: Path) -> None:
    """Write a study's report with all optional chapters, and keep what is compared."""
    from analysis.report.chapters import optional_names

    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(study, own := Path(work) / study.name)
        data = own if (own / "study.yaml").exists() else next(own.rglob("trials.parquet")).parent
        chapters = [word for name in optional_names() for word in ("--with", name)]
        command = [
            sys.executable,
            "-P",
            "-m",
            "experiment.cli",
            "report",
            str(data),
            "--out",
            f"{work}/out",
            *chapters,
        ]
        run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if run.returncode:
            raise SystemExit(f"{study.name}: {run.stderr[-3000:]}")
        report = Path(run.stdout.splitlines()[-1]).parent
        for file in (one for pattern in _REPORTED for one in report.glob(pattern)):
            kept = folder / file.relative_to(report)
            kept.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".png":
                shutil.copy(file, kept)
            else:
                text = _text(file.read_text("utf-8")) if file.suffix == ".html" else file.read_text("utf-8")
                kept.write_text(_CHANGES_DAILY.sub("…", text), "utf-8")


def _same(before: str, now: str) -> bool:
    """Return whether two lines differ at most by rounding errors of their numbers."""
    return before == now or (
        _NUMBER.sub("#", before) == _NUMBER.sub("#", now)
        and all(
            math.isclose(float(a), float(b), rel_tol=RELATIVE)
            for a, b in zip(_NUMBER.findall(before), _NUMBER.findall(now), strict=True)
        )
    )


def _differences(before: Path, now: Path) -> Iterator[str]:
    """Yield lines that describe how two versions of one file differ."""
    if before.suffix == ".png":
        old_pixels, new_pixels = imread(before), imread(now)
        if old_pixels.shape != new_pixels.shape:
            yield f"size {old_pixels.shape[:2]}, now {new_pixels.shape[:2]}"
        elif share := (abs(old_pixels - new_pixels).max(axis=2) > 0.1).mean():
            yield f"{share:.3%} of pixels differ"
        return
    old, new = before.read_text("utf-8").splitlines(), now.read_text("utf-8").splitlines()
    if len(old) == len(new):
        for old_line, new_line in zip(old, new, strict=True):
            if not _same(old_line, new_line):
                pairs = enumerate(zip(old_line, new_line, strict=False))
                differs_at = next(
                    (index for index, (a, b) in pairs if a != b), min(len(old_line), len(new_line))
                )
                start = max(0, differs_at - 60)
                yield f"-{old_line[start : start + 240]}"
                yield f"+{new_line[start : start + 240]}"
    else:
        lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
        yield from (line[:300] for line in lines if not line.startswith("@@"))


def compare(before: Path, now: Path) -> Iterator[str]:
    """Yield the files in which two snapshots differ, each with its first changed lines."""
    for name in sorted(
        {str(one.relative_to(top)) for top in (before, now) for one in top.rglob("*.*") if one.is_file()}
    ):
        if not (before / name).exists() or not (now / name).exists():
            yield f"{name}: {'missing' if (before / name).exists() else 'new'}"
        elif lines := list(_differences(before / name, now / name)):
            more = [f"… and {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
            yield "\n    ".join([f"{name}:", *lines[:MAX_LINES], *more])


PARTS = [*STEPS, "databases", "reports"]


def main(task: str, top: Path, named: list[str]) -> int:
    """Write or check the parts and studies named, and return the exit code."""
    parts = {name for name in named if name in PARTS} or {*PARTS}
    asked = [name for name in named if name not in PARTS]

    def is_asked(study: str) -> bool:
        return not asked or any(f"{study}/".startswith(f"{name}/") for name in asked)

    kept = top / ("base" if task == "write" else "now")
    differing = 0

    def tell(part: str, study: str) -> None:
        nonlocal differing
        found = list(compare(top / "base" / part / study, kept / part / study)) if task == "check" else []
        differing += len(found)
        print(
            "\n  ".join(
                [f"{part} {study}: {f'{len(found)} files differ' if task == 'check' else 'kept'}", *found]
            ),
            flush=True,
        )

    scripted = importlib.import_module("tests.scripted_openai")
    with tempfile.TemporaryDirectory() as work, scripted.ScriptedOpenAI(answer=_reply) as server:
        for name in filter(is_asked, case_names() if parts - {"reports"} else ()):
            case = Case(name, Path(work), kept, server)
            wanted = _needed(name, parts if task == "write" else parts - {"databases"})
            try:
                if wanted:
                    case.make()
                for part in (part for part in STEPS if part in wanted):
                    shutil.rmtree(kept / part / name, ignore_errors=True)
                    STEPS[part][0](case)
                    if part in parts:
                        tell(part, name)
                if name == "demo" and "databases" in parts:
                    if task == "write":
                        keep_databases(case, top / "databases")
                    shutil.rmtree(kept / "databases", ignore_errors=True)
                    open_databases(top / "databases", Path(work), kept, server)
                    tell("databases", name)
            except Failed as failure:
                differing += 1
                print(f"{name} failed: {failure}", flush=True)
            shutil.rmtree(case.folder, ignore_errors=True)
    studies = top / "studies"
    for study in sorted(studies.iterdir() if "reports" in parts and studies.exists() else ()):
        if is_asked(study.name):
            shutil.rmtree(kept / "reports" / study.name, ignore_errors=True)
            keep_report(study, kept / "reports" / study.name)
            tell("reports", study.name)
    return int(differing > 0)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("write", "check"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3:]))
