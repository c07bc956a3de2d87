"""How models were trained, in the words of a Method section and as a table: records, settings, losses."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from analysis import apa
from analysis.inside.trained import CONTROL, Family, Trained
from analysis.names import in_words
from analysis.report.apa_tables import ApaTable, Origin

_OPERATIONS = {
    "FT-RS": "{texts} of the texts, drawn one by one with a chance of 60%, {words} of the words with more than two letters had all "
    "their letters shuffled",
    "FT-KF&Adj": "{texts} of the texts, drawn one by one with a chance of 60%, {words} of the words with more than two letters kept "
    "their first letter and had two later neighbours exchanged",
    CONTROL: "the texts stayed as they are, the control of more training alone",
}
_DECAYS = {"cosine": "a cosine decay", "linear": "a linear decay", "none": "no decay"}
FILE = "tuning.json"


def told_of_trainings(family: Family) -> list[Markup]:
    """Write the paragraphs on what was trained from one model, and how."""
    known = [one for one in family.models if one.settings]
    told = [
        f"From {family.base}, {apa.worded(len(family.models), 'model')} "
        f"{'was' if len(family.models) == 1 else 'were'} trained with wrods: {'; '.join(_data_of_all(family))}."
    ]
    groups: dict[Hashable, list[Trained]] = {}
    for one in known:
        groups.setdefault(_how(one), []).append(one)
    for how, models in groups.items():
        who = "Each" if len(groups) == 1 and len(models) > 1 else apa.listing([one.group for one in models])
        told.append(
            f"{who} was trained {how}."
            if len(models) == 1 or len(groups) == 1
            else f"{who} were trained {how}."
        )
    on_texts = [one.settings for one in known if one.rule is not None]
    if len(on_texts) > 1 and len({(one["on"], one["texts"], one["seed"]) for one in on_texts}) == 1:
        told.append(
            "Trainings on running text had the same texts; under every rule the same words changed, drawn from those that every rule "
            "can change."
        )
    if any(one.task for one in known):
        told.append(
            "No line of a training set was a text of the study or a near copy of one (the same words in any order, with other "
            "capitals, marks or notation)."
        )
    left_out = [_left_out(one) for one in known if one.task is None]
    counts = [number for number in left_out if number is not None]
    if counts and len(counts) == len(left_out):
        several = f"{apa.count(min(counts))} to " if min(counts) < max(counts) else ""
        told.append(
            "Records that held a text of the study, or 13 words of one in a row, were left out: "
            f"{several}{apa.count(max(counts))}{' a training' if len(counts) > 1 else ''}."
        )
    lacking = [one.group for one in family.models if not one.settings]
    if lacking:
        told.append(f"Of {apa.listing(lacking)} no record of the training is at hand.")
    return [escape(" ".join(told))]


def _left_out(one: Trained) -> int | None:
    """Return how many records held a text of the study; None where it was not counted."""
    number = ((one.record.get("records") or {}).get("about") or {}).get("samples_left_out")
    return None if number is None else int(number)


def _data_of_all(family: Family) -> list[str]:
    """Say what the models were trained on, those on tasks of H-TEST together: ``ft-rs on 1,200 texts (…)``."""
    on_tasks: dict[str, list[Trained]] = {}
    told = []
    for one in family.models:
        if one.task is None:
            told.append(_data_of(one))
            continue
        lines = "released lines" if one.settings.get("on") == "released" else "lines"
        on_tasks.setdefault(f"{_many(one)}{lines} of", []).append(one)
    for lines, models in on_tasks.items():
        named = apa.listing([f"{in_words(str(one.task))} ({one.group})" for one in models])
        told.append(f"{'each ' if len(models) > 1 else ''}on {lines} one task of H-TEST, {named}")
    return told


def _many(one: Trained) -> str:
    records = one.record.get("records") or {}
    many = records.get("trained_on") or records.get("number")
    return "" if many is None else f"{apa.count(many)} "


def _data_of(one: Trained) -> str:
    if not one.settings:
        return one.group
    done = _OPERATIONS.get(str(one.rule or CONTROL), f"changed by the rule {one.rule}")
    records = one.record.get("records") or {}
    about = records.get("about") or {}
    texts, words = (about.get(name) for name in ("share_of_samples_drawn", "share_of_words_changed"))
    done = done.format(
        texts="in some" if texts is None else f"in {apa.percent(texts, 0)}",
        words="30%" if words is None else apa.percent(words, 0),
    )
    kind = "records" if "prompt" in str(records.get("kind", "")) else "texts"
    return f"{one.group} on {_many(one)}{kind} ({done})"


def _how(one: Trained) -> str:
    """Say how a model was trained, without what tells trainings of one study apart."""
    settings, schedule = one.settings, one.record.get("schedule") or {}
    lora = settings.get("lora")
    parts = []
    if settings.get("method") == "lora" and lora:
        parts.append(
            f"with low-rank matrices beside the weights (LoRA; Hu et al., 2022; rank {lora['rank']}, alpha {lora['alpha']:g}, dropout "
            f"{lora['dropout']:g}) that were added to them in the end"
        )
    elif settings.get("method") == "full":
        parts.append("in all its weights")
    if _is_ours(one):
        parts.append(
            f"by AdamW (Loshchilov & Hutter, 2019) with a learning rate of up to {settings['learning_rate']:g}, reached over the "
            f"first {apa.percent(settings['warmup'], 0)} of the steps and followed by "
            f"{_DECAYS.get(str(settings['decay']), 'a decay')}, "
            f"weight decay {settings['weight_decay']:g}, and gradients clipped to a norm of {settings['clip']:g}"
        )
    else:
        parts.append("by its provider")
    epochs = schedule.get("epochs") or settings.get("epochs")
    if epochs:
        parts.append(f"for {apa.worded(int(epochs), 'epoch')}")
    batch = schedule.get("batch_tokens") or settings.get("batch_tokens")
    if batch and _is_ours(one):
        length = schedule.get("sequence_length") or settings["sequence_length"]
        parts.append(
            f"in batches of {apa.count(batch)} tokens, at most {apa.count(length)} of them read together"
        )
    if one.task is not None:
        asked = (
            "as the study words its items"
            if settings.get("asked") == "study"
            else "bare, without instruction or examples"
        )
        parts.append(f"lines standing {asked}, with the loss taken over the reply alone")
    if settings.get("validation"):
        parts.append(f"{apa.percent(settings['validation'], 0)} of the records being held out")
    seed = settings.get("seed")
    return ", ".join(parts) + ("" if seed is None else f" (seed {seed})")


def _is_ours(one: Trained) -> bool:
    return not str(one.settings.get("use", "")).startswith("openai:")


def trainings_table(name: str, found: Sequence[Family]) -> ApaTable:
    """Tell of every training what it had and where its loss went."""
    rows = []
    for family in found:
        for one in family.models:
            record: Mapping[str, Any] = one.record
            records = record.get("records") or {}
            losses = [
                record.get(key) for key in ("first_validation_loss", "validation_loss", "training_loss")
            ]
            many = records.get("trained_on")
            tokens = record.get("tokens")
            rows.append(
                (
                    one.group,
                    family.base,
                    in_words(one.task)
                    if one.task
                    else str(one.rule or CONTROL)
                    if one.settings
                    else apa.MISSING,
                    apa.MISSING if many is None else apa.count(many),
                    apa.MISSING if not tokens else apa.count(tokens),
                    *(apa.number(loss) for loss in losses),
                )
            )
    note = (
        "Records and tokens that were trained on, tokens over all epochs. Losses in nats a token: of records held out, before and "
        "after; of the last tenth of the steps in training. Of prompts with replies the loss is that of the replies."
    )
    columns = (
        "Model",
        "Base",
        "Trained on",
        "Records",
        "Tokens",
        "Held out, before",
        "Held out, after",
        "Training",
    )
    return ApaTable(
        name, "Models that were trained", columns, tuple(rows), note,
        Origin(rows="records of the trainings (tuning/<name>/tuning.json and loss.csv)", file=FILE),
    )  # fmt: skip
