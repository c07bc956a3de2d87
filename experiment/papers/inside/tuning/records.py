"""The texts of a training, ``training.jsonl``, made once and then only read, and its record ``tuning.json``: what was trained on what.

A line is ``{"text": …}``, of which every token is predicted, or ``{"prompt": …, "reply": …}`` (or ``messages`` instead of
``prompt``), of which only the reply is predicted. ``provenance`` gives its source.
"""

from __future__ import annotations

import csv
import hashlib
import heapq
import importlib.metadata
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice, product
from pathlib import Path
from typing import Any

from experiment.lists import list_ids
from experiment.models.engine import Message
from experiment.models.leases import file_lock
from experiment.models.planning.prompting_settings import SessionTemplate, read_prompting_settings
from experiment.models.planning.session import ModelSession, SessionTaker
from experiment.models.runs.environment import git_state, hardware, versions
from experiment.models.runs.limits import Stop
from experiment.papers.inside.tuning.settings import RELEASED, Training
from experiment.papers.inside.tuning.training_sets import (
    FT_ORI,
    HeldOut,
    ScrambledTexts,
    TextFiles,
    htest_training_set,
    released_training_set,
)
from experiment.procedure import Plan, plan_session
from experiment.study import Study
from experiment.study.study import CURVE, ITEMS, RECORD
from experiment.trials import CHOSEN
from stimuli.corpora.corpus import line_rows
from stimuli.errors import UserError
from stimuli.files import file_sha256, replace_file, replacing
from stimuli.seeds import generator, stable_seed

RECORDS_FILE, ABOUT = "training.jsonl", "training.meta.json"
FEWEST = 10
"""Records without which nothing is trained."""
TOLD_EVERY = 20_000
LEFT_OUT = "samples_left_out"
"""The name under which records that held a text of the study are counted."""
_WORDING = 0.1
"""A text that more than this share of the items show is how the study asks, not what it asks about."""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """Result of a command for a training."""

    training: str
    base: str  # the model's name in the study
    use: str  # what ``use`` names the trained model
    state: (
        str  # ``finished``, ``stopped``, ``written`` (the files of a job), or a provider's word for its job
    )
    was_finished: bool = False  # nothing was to be done
    steps: int = 0  # made
    planned: int = 0
    tokens: int = 0  # read
    seconds: float = 0.0  # spent in steps
    stopped: str | None = None  # why it ended before the end
    interrupted: bool = False
    first_validation_loss: float | None = None  # before the first step, in nats a token
    validation_loss: float | None = None  # after the last one
    folder: str = ""
    most_usd: float | None = None  # the most that a provider's training can cost
    cost_usd: float | None = None  # what it did cost
    job_id: str | None = None  # as the provider names it
    model_name: str | None = None
    remark: str | None = None  # what else is to be known

    @classmethod
    def of(cls, training: Training, state: str, **more: Any) -> Outcome:
        """Return the outcome of a training with its names and its folder."""
        use, folder = f"tuned:{training.name}", str(training.folder)
        return cls(training.name, training.base, use, state, folder=folder, **more)

    @property
    def is_done(self) -> bool:
        """Whether the same command would do nothing more."""
        return self.state in ("finished", "written")

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as ``--json`` prints it."""
        return asdict(self)


PACKAGES = ("peft", "safetensors")
FINISHED = "finished"


@contextmanager
def held(training: Training) -> Iterator[None]:
    """Hold the right to train; it ends with the process."""
    training.folder.mkdir(parents=True, exist_ok=True)
    taken = UserError(
        f"training {training.name} is already running",
        mend="Let it end, or stop it; the same command resumes from its last checkpoint.",
        exit_code=1,
    )
    with file_lock(training.folder / ".lock", taken):
        yield


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the record of a training run."""
    text = json.dumps(record, ensure_ascii=False, indent=1, default=str)
    replace_file(folder / RECORD, text)


def require_same(training: Training, record: Mapping[str, Any]) -> None:
    """Refuse to go on with a training whose settings are others by now."""
    before = record.get("settings")
    if before is None:
        return
    now = training.to_json()
    changed = [
        f"{key} was {before.get(key)!r} and is {now.get(key)!r}"
        for key in {**before, **now}
        if before.get(key) != now.get(key)
    ]
    if changed:
        raise UserError(
            f"{training.place}: training {training.name} was begun with other settings: {'; '.join(changed)}",
            mend=f"Give it another name, put the settings back, or remove {training.folder} to train again.",
        )


def opening_record(study: Study, training: Training) -> dict[str, Any]:
    """Return what is recorded before the first step."""
    package_versions = dict(versions())
    for name in PACKAGES:
        try:
            package_versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "training": training.name,
        "study": study.id,
        "state": "under way",
        "base": training.base,
        "settings": training.to_json(),
        "settings_hash": training.hash,
        "versions": package_versions,
        "hardware": dict(hardware()),
        "git": git_state(study.folder),
        "began_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


CURVE_COLUMNS = ("step", "epoch", "tokens", "training_loss", "validation_loss", "learning_rate", "seconds")


@dataclass(frozen=True)
class LearningPoint:
    """One step."""

    step: int  # from 1; 0 is the model as it was
    epoch: float  # epochs done
    tokens: int  # tokens read by then
    training_loss: float | None  # nats a token, before the step's change of weights
    validation_loss: float | None  # after it
    learning_rate: float
    seconds: float

    def cells(self) -> list[str]:
        """Return the row of the file."""
        losses = (
            "" if loss is None else f"{loss:.6f}" for loss in (self.training_loss, self.validation_loss)
        )
        return [
            str(self.step), f"{self.epoch:.4f}", str(self.tokens), *losses, f"{self.learning_rate:.6g}", f"{self.seconds:.2f}",
        ]  # fmt: skip


class Curve:
    """Writes the file with one row per step.

    ``step``: the step of the checkpoint from which training resumes; later rows are dropped.
    """

    def __init__(self, folder: Path, step: int | None) -> None:
        self.file = folder / CURVE
        earlier = [] if step is None else [row for row in read_curve(self.file) if row.step <= step]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(CURVE_COLUMNS)
        writer.writerows(point.cells() for point in earlier)
        replace_file(self.file, text.getvalue())

    def add(self, point: LearningPoint) -> None:
        """Write a step."""
        with self.file.open("a", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerow(point.cells())


def read_curve(file: Path) -> list[LearningPoint]:
    """Return the steps of a file; none where there is no file. A last row that was cut off is left out."""
    if not file.is_file():
        return []
    points = []
    with file.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if None in row.values() or not row.get("seconds"):
                continue
            training, validation = (float(row[name]) if row[name] else None for name in CURVE_COLUMNS[3:5])
            points.append(
                LearningPoint(
                    int(row["step"]), float(row["epoch"]), int(row["tokens"]), training, validation,
                    float(row["learning_rate"]), float(row["seconds"]),
                )
            )  # fmt: skip
    return points


@dataclass(frozen=True)
class Records:
    """A kept file of training records."""

    file: Path
    number: int
    replies: bool  # whether they are prompts with replies, else running text
    sha256: str
    about: Mapping[str, Any]  # what the makers of the records counted
    made_from: Mapping[str, Any] = field(default_factory=dict)  # the settings and items they were made from

    def __iter__(self) -> Iterator[Record]:
        with self.file.open("rb") as stream:
            for line in stream:
                yield json.loads(line)


def kept_records(folder: Path) -> Records | None:
    """Return the records that a training has kept; None where it has none yet."""
    try:
        about = json.loads((folder / ABOUT).read_text("utf-8"))
    except FileNotFoundError:
        return None
    if not (folder / RECORDS_FILE).is_file():
        return None
    return Records(
        folder / RECORDS_FILE, about["number"], about["replies"], about["sha256"], about["about"], about["of"]
    )


def made_from(study: Study, training: Training) -> dict[str, Any]:
    """Return what decides on the records of a training: its settings, and the items that none of them may hold."""
    file = study.folder / ITEMS
    return {**training.of_data(), "items": file_sha256(file) if file.exists() else None}


def built_again(study: Study, training: Training) -> str | None:
    """Return a remark that the study's items were built again since the records were made; None where they are the same."""
    records = kept_records(training.folder)
    if records is None or records.made_from.get("items") == made_from(study, training)["items"]:
        return None
    return (
        f"the study's items were built again since the records of training {training.name} were made, so that items of the "
        "test may be among them"
    )


def make_records(
    study: Study,
    training: Training,
    *,
    stop: Stop | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Records:
    """Make and store a training run's records, or return stored ones; nothing is stored where an interruption is requested."""
    records = kept_records(training.folder)
    if records is not None and records.made_from == made_from(study, training):
        return records
    if (stale := built_again(study, training)) and (training.folder / RECORD).exists():
        raise UserError(
            f"{training.place}: {stale}",
            mend=f"Remove {training.folder} to train again, or build the items as they were.",
        )
    made, about = records_of(study, training)
    training.folder.mkdir(parents=True, exist_ok=True)
    number, replies, digest = 0, None, hashlib.sha256()
    with replacing(training.folder / RECORDS_FILE) as partial:
        with partial.open("wb") as stream:
            for record in made:
                is_reply = _checked(record, training, number + 1)
                if replies is not None and is_reply != replies:
                    raise UserError(
                        f"{training.place}: record {number + 1} of {training.on} is "
                        f"{'a prompt with a reply' if is_reply else 'running text'}, and those before it are not",
                        mend="Keep the two kinds in separate files.",
                    )
                replies = is_reply
                if stop is not None and stop.is_asked:
                    raise KeyboardInterrupt
                line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"
                digest.update(line)
                stream.write(line)
                number += 1
                if number % TOLD_EVERY == 0:
                    say(f"{training.name}: {number:,} records made")
        counts = about()
        left_out = counts.get(LEFT_OUT)
        if number < FEWEST:
            beside = f" besides {left_out} that hold texts of the study" if left_out else ""
            raise UserError(
                f"{training.place}: {training.on} gives {number} {'record' if number == 1 else 'records'} to train on{beside}, and "
                f"a training needs {FEWEST} or more",
                mend="Give more texts, none of them the study's." if left_out else "Give more texts.",
            )
    summary = {
        "number": number, "replies": bool(replies), "sha256": digest.hexdigest(), "about": counts,
        "of": made_from(study, training),
    }  # fmt: skip
    replace_file(training.folder / ABOUT, json.dumps(summary, ensure_ascii=False, indent=1))
    if left_out:
        say(
            f"{training.name}: {left_out:,} of {number + left_out:,} records held a text of the study and were left out"
        )
    stored = kept_records(training.folder)
    assert stored is not None
    return stored


def records_of(study: Study, training: Training) -> tuple[Iterable[Record], Callable[[], Mapping[str, Any]]]:
    """Return a training's records, made as they are gone through, and what will then tell what was counted."""
    if training.is_htest:
        return _of_htest(study, training)
    path = study.folder / Path(training.on).expanduser()
    if not path.exists():
        raise UserError(
            f"{training.place}: there is nothing to train on at {path}",
            mend="Give a file or folder of texts, from the study's folder, or on: htest.",
        )
    if training.rule is None and has_replies(path):
        return _of_prompts(study, training, path)
    texts = TextFiles((path,), field=training.text_field)
    chosen = _drawn(lambda: texts, training)
    shown: set[str] = set()
    for item in study.items:
        shown.update(item.shown.values(), item.intact.values())
    passages = ScrambledTexts(chosen, training.rule or FT_ORI, seed=training.seed, held_out=HeldOut(shown))
    return passages, lambda: passages.counts.to_json()


def has_replies(path: Path) -> bool:
    """Return whether a file holds prompts with replies, by its first line."""
    if path.suffix.lower() not in (".jsonl", ".ndjson") or not path.is_file():
        return False
    with path.open("rb") as stream:
        first = stream.readline()
    try:
        record = json.loads(first)
    except ValueError:
        return False
    return isinstance(record, dict) and bool({"reply", "prompt", "messages"} & set(record))


def _of_htest(study: Study, training: Training) -> tuple[Iterable[Record], Callable[[], Mapping[str, Any]]]:
    assert training.task is not None
    held_out: list[str] = []
    elsewhere: list[str] = []
    for item in study.items:
        (held_out if item.condition.get("task") == training.task else elsewhere).extend(item.shown.values())
    apart: dict[str, Any] = {"seed": training.seed, "held_out": held_out, "of_other_tasks": elsewhere}
    records: list[dict[str, Any]]
    counts: Mapping[str, Any]
    if training.on == RELEASED:
        folder = study.folder / Path(study.get("materials", "htest", "from")).expanduser()
        published = "items" in study.published
        records, counts = released_training_set(folder, training.task, published=published, **apart)
    else:
        records, counts = htest_training_set(training.task, **apart)
    return (records if training.asked == "bare" else as_asked(study, training, records)), lambda: counts


def _of_prompts(
    study: Study, training: Training, path: Path
) -> tuple[Iterable[Record], Callable[[], Mapping[str, Any]]]:
    """Return the lines of a file of prompts with replies, but for those that hold what the study asks about."""
    items_of: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for item in study.items:
        if item.role not in ("exemplar", "practice"):
            for text in (*item.shown.values(), *item.intact.values()):
                items_of[text].add((item.set_name, item.item_id))
    most = max(10.0, _WORDING * len({item for items in items_of.values() for item in items}))
    held_out = HeldOut(text for text, items in items_of.items() if len(items) <= most)
    counts = {LEFT_OUT: 0}

    def kept() -> Iterator[Record]:
        for number, record in enumerate(_lines(path, training), 1):
            is_reply = _checked(record, training, number)
            said = [*(turn.content for turn in messages_of(record)), record["reply"]] if is_reply else []
            if any(map(held_out.in_prompt, said)):
                counts[LEFT_OUT] += 1
            else:
                yield record

    return kept(), lambda: counts


def messages_of(record: Record) -> tuple[Message, ...]:
    """Return the messages of a prompt."""
    turns = record.get("messages") or [{"role": "user", "content": record["prompt"]}]
    return tuple(Message(turn["role"], turn["content"]) for turn in turns)


def _drawn(read: Callable[[], Iterable[Any]], training: Training) -> Iterator[Any]:
    """Yield texts: as many as the training asks for, drawn by its seed, in their order; all where it names no number."""
    if training.texts is None:
        yield from read()
        return
    draws = (
        (stable_seed(training.seed, "training: which texts", place), place) for place, _ in enumerate(read())
    )
    chosen = {place for _, place in heapq.nsmallest(training.texts, draws)}
    last = max(chosen, default=-1)
    yield from (text for place, text in enumerate(islice(read(), last + 1)) if place in chosen)


def _lines(path: Path, training: Training) -> Iterator[Record]:
    """Yield the lines of a file of records unchanged, up to a number if one is given."""
    for row in _drawn(lambda: (record for _, record in line_rows(path)), training):
        if isinstance(row, UserError):
            raise row
        yield row


def _checked(record: Record, training: Training, number: int) -> bool:
    """Return whether a record is a prompt with a reply."""
    place = f"{training.place}: record {number} of {training.on}"
    if isinstance(record.get("text"), str) and "reply" not in record:
        if not record["text"].strip():
            raise UserError(f"{place} has an empty text", mend="Take it out.")
        return False
    has_prompt = isinstance(record.get("prompt"), str) or _is_talk(record.get("messages"))
    if has_prompt and isinstance(record.get("reply"), str) and record["reply"].strip():
        return True
    raise UserError(
        f"{place} has the fields {', '.join(map(str, record)) or 'none'}; a record is a text, or a prompt with a reply",
        mend='Write lines like {"text": "…"} or {"prompt": "…", "reply": "…"}, or name the field with field:.',
    )


def _is_talk(messages: object) -> bool:
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(
            isinstance(message, Mapping)
            and message.get("role") in ("system", "user", "assistant")
            and isinstance(message.get("content"), str)
            for message in messages
        )
    )


def as_asked(study: Study, training: Training, lines: Sequence[Record]) -> Iterator[Record]:
    """Yield each line with the messages that the study would send for it, and the label that would be right."""
    manner = read_prompting_settings(study, training.model)
    if manner.context != "independent" or manner.practice == "answered" or manner.strategy != "direct":
        raise UserError(
            f"{training.place}: asked: study words each line by itself, and the study asks {training.base} in a conversation, or "
            "for thoughts before the answer",
            mend="Write asked: bare, or set models: context: independent and strategy: direct.",
        )
    if manner.presentation != "text":
        raise UserError(
            f"{training.place}: {training.base} is shown pictures, and training takes text",
            mend="Write asked: bare, or name a model that is shown text.",
        )
    maps = study.get("models", "label_maps", default="balanced")
    variants = range(1, int(study.get("models", "prompt_variants", default=1)) + 1)
    slots = list(product(list_ids(study, study.items, label_maps=maps, of_models=True), variants))
    draw = generator(training.seed, "training: in which list a line stands", training.task)
    of_slot: dict[tuple[int, int], list[int]] = defaultdict(list)
    order = [slots[place % len(slots)] for place in range(len(lines))]
    draw.shuffle(order)
    for place, slot in enumerate(order):
        of_slot[slot].append(place)
    records: dict[int, Record] = {}
    plans: dict[int, Plan] = {}
    for (list_id, variant), places in of_slot.items():
        if list_id not in plans:
            plans[list_id] = plan_session(study, study.items, list_id=list_id)
        plan = _with_lines(plans[list_id], training, [lines[place] for place in places])
        plan = {**plan, "prompt_variant": variant}
        session = ModelSession(SessionTemplate(plan, manner), [], SessionTaker(training.base, study.seed))
        requests = session.begin({})
        for place, request, trial in zip(places, requests, session.trials, strict=True):
            turns = [{"role": message.role, "content": message.content} for message in request.messages]
            prompt = {"prompt": turns[0]["content"]} if len(turns) == 1 else {"messages": turns}
            provenance = {**lines[place]["provenance"], "list": list_id, "prompt_variant": variant}
            records[place] = {**prompt, "reply": _label(trial), "provenance": provenance}
    return (records[place] for place in range(len(lines)))


def _with_lines(plan: Plan, training: Training, lines: Sequence[Record]) -> Plan:
    """Return a plan whose blocks ask about the lines, each worded as the first test item of the task."""
    screens = []
    is_found = False
    for screen in plan["screens"]:
        if screen["kind"] != "block":
            screens.append(screen)
            continue
        model = next(
            (
                trial
                for trial in screen["trials"]
                if trial["condition"].get("task") == training.task
                and not trial["is_attention_check"]
                and trial["steps"][-1]["step"] in CHOSEN
            ),
            None,
        )
        trials = (
            []
            if model is None or is_found
            else [_with_line(model, line["provenance"], number) for number, line in enumerate(lines)]
        )
        is_found = is_found or bool(trials)
        screens.append({**screen, "trials": trials})
    if not is_found:
        raise UserError(
            f"{training.place}: no block of the study asks for a choice about items of {training.task}",
            mend="Write asked: bare.",
        )
    return {**plan, "screens": screens}


def _with_line(trial: dict[str, Any], origin: Mapping[str, Any], number: int) -> dict[str, Any]:
    text, label = str(origin["text"]), str(origin["label"])
    shown = {**trial["shown"], "text": text}
    steps = [
        {**step, "text": text, "lines": [text]} if step.get("text") == trial["shown"]["text"] else step
        for step in trial["steps"]
    ]
    return {
        **trial, "item_id": f"training-{number}", "trial_index": number + 1, "shown": shown, "steps": steps,
        "answer": label, "accepted": [label],
    }  # fmt: skip


def _label(trial: dict[str, Any]) -> str:
    """Return the label that is right for a line, as its list shows labels."""
    step = trial["steps"][-1]
    return str(step["labels"][step["responses"].index(trial["answer"])])
