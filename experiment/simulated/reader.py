"""Simulated readers: each answers trials by its settings and types as people do (log-normal times, pauses at words).

They take part through the participant API, as fast as requested, several in parallel.
"""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import aiohttp

from experiment.parsing.free_answers import is_accepted, number_of
from experiment.parsing.label_sets import BETWEEN, answers_in
from experiment.procedure import participant_view, plan_session, trials_of
from experiment.procedure.plan_builder import STEP_NAME
from experiment.procedure.questions import is_eligible
from experiment.procedure.steps import parts_of, region_lines, region_names
from experiment.simulated.truth import (
    POSITIONS,
    GroundTruth,
    TrueEffects,
    Typing,
    level_of,
    unknown_names,
)
from experiment.store import Store, records
from experiment.study import Study
from experiment.study.groups import range_in
from experiment.study.questionnaires import is_asked
from experiment.trials import (
    FRAME_MS,
    LASTING,
    NO_KEY,
    OWN_TYPE,
    RATED,
    TYPED,
    UNANSWERED,
    frames_for,
    frames_of,
    labels_of,
    presented_ms,
)
from experiment.trials.own import simulate_record
from stimuli.errors import UserError, together
from stimuli.item import ChangeRecord
from stimuli.seeds import generator

RETRIES = 6


class StudyEntrance(NamedTuple):
    """The address of a study's participant API, ``http://127.0.0.1:PORT/api/STUDY``, and a pass of simulated readers."""

    api: str
    given_pass: str


async def take_part(
    entrance: StudyEntrance,
    readers: Sequence[SimulatedReader],
    *,
    at_once: int = 8,
    pause: float = 0.0,
    told: Callable[[SimulatedReader, int], None] | None = None,
) -> None:
    """Send readers through the participant API, several in parallel, each answering every trial of its plan."""
    api, given_pass = entrance
    gate = asyncio.Semaphore(at_once)
    async with aiohttp.ClientSession(headers={"X-Wrods": "1"}) as http:
        opened = [await _open(http, api, given_pass, reader) for reader in readers]

        async def send(reader: SimulatedReader, session: Mapping[str, Any]) -> None:
            async with gate:
                count = await _go_through(http, api, reader, session, pause)
                if told:
                    told(reader, count)

        await asyncio.gather(*(send(*pair) for pair in zip(readers, opened, strict=True)))


def begin_at(store: Store, study: str) -> int:
    """Return the number of the next simulated reader of a study, from 1."""
    with store.read() as connection:
        sessions_so_far = records.sessions_overview(connection, study)
    return 1 + len([row for row in sessions_so_far if row["reader_kind"] == "simulated"])


def fill(
    study: Study,
    truth: GroundTruth,
    entrance: StudyEntrance,
    numbers: Iterable[int],
    *,
    pause: float = 0.0,
    told: Callable[[int], None] = lambda _: None,
) -> int:
    """Send readers of these numbers through the participant API."""
    everyone = [SimulatedReader(f"S{number:03d}", study, truth) for number in numbers]
    done = 0

    def count(_: SimulatedReader, trials: int) -> None:
        nonlocal done
        done += trials
        told(trials)

    # in a separate thread, because the caller's may already run an event loop (in a notebook, for example)
    with ThreadPoolExecutor(max_workers=1) as executor:
        executor.submit(asyncio.run, take_part(entrance, everyone, pause=pause, told=count)).result()
    return done


async def _open(
    http: aiohttp.ClientSession, api: str, given_pass: str, reader: SimulatedReader
) -> dict[str, Any]:
    """Begin a reader's session; readers begin one after another, so that numbers and lists do not depend on chance."""
    draw = generator(reader.seed, "simulated session", reader.name)
    client = {"browser": "simulated", "system": "simulated", "device": "simulated"}
    body = {"client_uuid": new_uuid(draw), "simulated": True, "pass": given_pass, "client": client}
    session = dict(await _post(http, f"{api}/sessions", body))
    if session["plan"]["list_id"] is not None:
        return session
    token = {"Authorization": f"Bearer {session['token']}"}
    base = f"{api}/sessions/{session['session_id']}"
    for screen in reader.plan(session)["screens"]:
        if screen["kind"] == "questions":
            await _answer(http, base, reader, screen, token)
    async with http.get(base, headers=token) as answer:
        return {**session, **await answer.json()}


async def _go_through(
    http: aiohttp.ClientSession, api: str, reader: SimulatedReader, session: Mapping[str, Any], pause: float
) -> int:
    token = {"Authorization": f"Bearer {session['token']}"}
    base = f"{api}/sessions/{session['session_id']}"
    done = {(index, attempt) for index, attempt in session["done"]}
    count = trials = 0
    for screen in reader.plan(session)["screens"]:
        if screen["kind"] == "questions" and not screen.get("is_answered"):
            await _answer(http, base, reader, screen, token)
        for trial in screen.get("trials", ()):
            payload = reader.answer(trial)
            count += 1
            trials += STEP_NAME not in trial
            if (trial["trial_index"], 1) not in done:
                await _post(http, f"{base}/trials", payload, token)
                await asyncio.sleep(pause)
    await _post(http, f"{base}/finish", {"trials": count}, token)
    return trials


async def _answer(
    http: aiohttp.ClientSession,
    base: str,
    reader: SimulatedReader,
    screen: Mapping[str, Any],
    token: Mapping[str, str],
) -> None:
    """Send a reader's answers to the questions of a screen."""
    draw = generator(reader.seed, "simulated questions", reader.name, screen["name"])
    body = {"client_uuid": new_uuid(draw), "screen": screen["name"], "answers": reader.answers(screen)}
    await _post(http, f"{base}/answers", body, token)


async def _post(
    http: aiohttp.ClientSession, url: str, body: Any, headers: Mapping[str, str] | None = None
) -> Any:
    problem = ""
    for attempt in range(RETRIES):
        try:
            async with http.post(url, json=body, headers=headers) as answer:
                if answer.status < 300:
                    return await answer.json()
                problem = f"{answer.status} {await answer.text()}"
                if answer.status < 500 and answer.status != 429:
                    break
        except aiohttp.ClientError as error:
            problem = str(error)
        await asyncio.sleep(0.2 * 2**attempt)
    raise UserError(f"the server did not take {url}: {problem}", exit_code=1)


PLUGIN = "wrods-simulated 2"


def new_uuid(draw: Random) -> str:
    """Return a UUID from a private random generator."""
    return str(uuid.UUID(int=draw.getrandbits(128), version=4))


class SimulatedReader:
    """One simulated reader.

    ``name``: its number, such as S001; ``study``: with built items: answers are drawn by item and condition, which pages do not
    receive.
    """

    def __init__(self, name: str, study: Study, truth: GroundTruth) -> None:
        self.name = name
        self.study = study
        self.truth = truth
        if faults := list(unknown_names(truth, study, "simulated readers")):
            raise together(faults)
        self.seed = study.seed
        self.items = {_key(item.set_name, item.item_id, item.condition): item for item in study.items}
        self.clock = 1000.0
        self.answered = 0
        self.said: dict[str, Any] = {}

    def plan(self, session: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole plan of a session, which only the study has: with items, answers and accepted answers."""
        sent = session["plan"]
        plan = plan_session(
            self.study,
            self.study.items,
            list_id=sent["list_id"],
            session_key=session["session_id"],
            order_row=sent.get("order_row", 0),
        )
        if participant_view(plan)["screens"] != sent["screens"]:
            raise UserError(
                f"the session of {self.name} shows other trials than the study has now",
                mend="The study changed since the session began; let readers begin in a new study.db.",
            )
        return plan

    def trials(self, session: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the trials of a session's whole plan (see :meth:`plan`)."""
        return trials_of(self.plan(session))

    def answers(self, screen: Mapping[str, Any]) -> dict[str, Any]:
        """Return answers to what a screen asks after earlier ones: accepted ones for eligibility, else the truth's, or any."""
        draw = generator(self.seed, "simulated background", self.name, screen["name"])
        answers: dict[str, Any] = {}
        groups = screen.get("groups")
        # groups are filled in turn
        deciding = groups[int(self.name.lstrip("S")) % len(groups)]["accept"] if groups else {}
        for question in screen["questions"]:
            name = question["name"]
            if name in deciding:
                answers[name] = _any_answer({**question, "accept": deciding[name]}, draw)
            elif is_asked(question.get("only", {}), self.said | answers):
                answers |= _said(question, draw, self.truth.questions)
        self.said |= answers
        return answers

    def answer(self, trial: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload of one trial, as the page would send it (times in ms)."""
        condition = json.dumps(trial["condition"], sort_keys=True)
        step = [trial[STEP_NAME]] if STEP_NAME in trial else []
        draw = generator(self.seed, "simulated answer", self.name, trial["item_id"], condition, *step)
        lapse = generator(self.seed, "simulated lapse", self.name, trial["trial_index"])
        lapsed = lapse.random() < self.truth.lapses.rate
        right = draw.random() < 1 / (1 + math.exp(-self._value(*self._given(trial, "accuracy"), trial)))
        if trial["is_attention_check"]:
            right = True
        times: dict[str, tuple[float, float]] = {}
        regions: list[dict[str, Any]] = []
        onset = self.clock
        for step in trial["steps"]:
            spent, regions_of_step = self._time(step, trial, onset, draw)
            if lapsed and not step.get("part_ms"):
                spent *= self.truth.lapses.slower
            regions += regions_of_step
            times[step["step"]] = (onset, spent)
            onset += spent
        self.clock = onset + trial["interval_ms"] + trial["fixation_ms"]
        self.answered += 1
        answering = trial["steps"][-1]
        started, spent = times[answering["step"]]
        is_typed = answering["step"] in TYPED
        recorded = self._recorded(trial, right and not lapsed)
        response = (
            self._rating(answering, trial, lapse if lapsed else None)
            if answering["step"] in RATED
            else self._response(answering, trial, right, lapse if lapsed else None, draw.randrange)
        )
        keys: KeyLog | None = None
        first_key = spent / 2
        if is_typed and response and self.truth.typing.key_ms:
            pace = generator(self.seed, "simulated keys", self.name, trial["trial_index"])
            log = typed(response, self.truth.typing, self.seed, self.name, pace)
            first_key, spent = spent, spent + log[-1][0]
            keys = [(first_key + moment, key) for moment, key in log]
            self.clock += log[-1][0]
        limit = answering.get("time_limit_ms")
        late = limit is not None and spent > limit
        waiting = [
            label
            for label, key in zip(answering.get("labels") or (), answering.get("keys") or (), strict=False)
            if key == NO_KEY
        ]
        waits = bool(waiting) and (late or response in waiting)
        if waits:
            response, spent, late = waiting[0], float(limit or 0), False
        prime = next((step for step in trial["steps"] if step["step"] == "prime"), None)
        frames = None if prime is None else frames_of(prime, "prime_ms")
        read = next((step for step in trial["steps"] if step["step"] == "read"), None)
        by_itself = presented_ms(read) if read is not None and read.get("part_ms") else None
        is_cut = any(region.get("is_correct") is False and region["right_rt"] is None for region in regions)
        is_read = read is not None and by_itself is None and not is_cut
        has_moment = not (late or waits or answering.get("part_ms"))
        return {
            **dict.fromkeys(("paint_ts", "early_keys", "insertions", "hint_ms")),
            **dict.fromkeys(
                (
                    "dropped_frames",
                    "hidden_ms",
                    "blurred_ms",
                    "paste_count",
                    "keyless_chars",
                    "early_responses",
                ),
                0,
            ),
            "client_uuid": new_uuid(draw),
            "trial_index": trial["trial_index"],
            "attempt": 1,
            "response_raw": None if late else response,
            **({"recorded": {} if late else recorded} if recorded else {}),
            "timed_out": late,
            "rt": None if late or waits or answering["step"] in UNANSWERED else spent,
            "reading_time": times["read"][1] if is_read else None,
            "onset_ts": started,
            "response_ts": started + spent if has_moment else None,
            "handler_ts": started + spent if has_moment else None,
            "frame_period": FRAME_MS,
            "first_key_ms": first_key if is_typed and not late else None,
            "typing_ms": spent - first_key if is_typed and not late else None,
            "key_log": None if late or keys is None else [list(key) for key in keys],
            "prime_frames": frames,
            "prime_ms": None if frames is None else frames * FRAME_MS,
            "shown_frames": None if by_itself is None else round(by_itself / FRAME_MS),
            "shown_ms": by_itself,
            "regions": regions,
            "plugin_version": PLUGIN,
            "created_at": datetime.now(UTC).isoformat(),
        }

    def _recorded(self, trial: Mapping[str, Any], right: bool) -> dict[str, Any]:
        """Return what a trial's steps of the study's own types record, by type."""
        draw = generator(self.seed, "simulated fields", self.name, trial["trial_index"])
        return {
            step["type"]: simulate_record(
                self.study.own_types[step["type"]], step, trial["answer"], right, draw
            )
            for step in trial["steps"]
            if step["step"] == OWN_TYPE
        }

    def _time(
        self, step: Mapping[str, Any], trial: Mapping[str, Any], onset: float, draw: Random
    ) -> tuple[float, list[dict[str, Any]]]:
        """Return the time of a step and, for a text read part by part, those of its parts."""
        if step["step"] in LASTING:
            return presented_ms(step), []
        if step.get("part_ms"):
            return presented_ms(step), _presented(step, onset)
        if step.get("foils"):
            regions = self._choices(step, trial, onset)
            return sum(region["right_rt"] or region["rt"] for region in regions), regions
        if step.get("as", "whole") != "whole":
            regions = self._words(step, trial, onset)
            return sum(region["rt"] for region in regions), regions
        given = self.truth.time
        spent = math.exp(self._value(given, "time", trial) + draw.gauss(0, given.residual_sd))
        if given.tail_ms:
            tail = generator(self.seed, "simulated tail", self.name, trial["trial_index"], step["step"])
            spent += tail.expovariate(1 / given.tail_ms)
        return max(spent, float(step.get("minimum_ms") or 0)), []

    def _words(self, step: Mapping[str, Any], trial: Mapping[str, Any], onset: float) -> list[dict[str, Any]]:
        """Return the regions of a text read part by part; a changed word slows its part and the next, a region's effect its parts."""
        given = self.truth.words
        participant_effect = generator(self.seed, "simulated reader", "words", self.name).gauss(
            0, given.participant_sd
        )
        draw = generator(self.seed, "simulated words", self.name, trial["trial_index"])
        costs = self._costs(trial, step["text"])
        lines = region_lines(step)
        regions: list[dict[str, Any]] = []
        spilled = 0.0
        number = 0
        for place, part in enumerate(parts_of(step)):
            words = len(part.split())
            cost = sum(costs.get(word, 0.0) for word in range(number, number + words))
            median = given.word_ms * words + given.letter_ms * len("".join(part.split()))
            shift = cost + spilled + self._of_regions(trial, place)
            rt = median * math.exp(participant_effect + shift + draw.gauss(0, given.residual_sd))
            regions.append({"region": place, "line": lines[place], "onset_ts": onset, "rt": rt})
            onset += rt
            spilled = given.spill_over * cost
            number += words
        return regions

    def _of_regions(self, trial: Mapping[str, Any], word: int) -> float:
        """Return what a trial's condition adds to the log time of a word by the regions that it is in."""
        names = (region_names(trial, word) or "").split(",")
        return sum(
            levels.get(level_of(trial["condition"], factor), 0.0)
            for name in names
            for factor, levels in self.truth.regions.effects.get(name, {}).items()
        )

    def _choices(
        self, step: Mapping[str, Any], trial: Mapping[str, Any], onset: float
    ) -> list[dict[str, Any]]:
        """Return the regions of a maze: each choice is right as often as an answer; the sentence may end with a foil."""
        draw = generator(self.seed, "simulated choices", self.name, trial["trial_index"])
        right = 1 / (1 + math.exp(-self._value(self.truth.accuracy, "accuracy", trial)))
        made: list[dict[str, Any]] = []
        for region in self._words(step, trial, onset):
            is_correct = draw.random() < right
            again = None if step["wrong"] == "end" else 2 * region["rt"]
            right_rt = region["rt"] if is_correct else again
            made.append({**region, "onset_ts": onset, "is_correct": is_correct, "right_rt": right_rt})
            onset += right_rt or region["rt"]
            if right_rt is None:
                break
        return made

    def _costs(self, trial: Mapping[str, Any], text: str) -> dict[int, float]:
        """Return the cost of changed words by their index between spaces."""
        condition = {
            name: level for name, level in trial["condition"].items() if name not in self.study.between
        }
        item = self.items.get(_key(trial["set"], trial["item_id"], condition))
        if item is None or not self.truth.words.changed:
            return {}
        starts = {name: text.find(shown) for name, shown in trial["shown"].items()}
        costs = {}
        for change in item.changes:
            if change.get("unit", "letter") == "letter" and starts[change["field"]] >= 0:
                before = text[: starts[change["field"]] + change["start"]]
                # the index, among words between spaces, of the word that contains the change
                costs[len(f"{before}x".split()) - 1] = self._cost(change)
        return costs

    def _cost(self, change: ChangeRecord) -> float:
        """Return the cost of a change by its position in its word: external if both ends are changed."""
        given = self.truth.words
        permutation: Sequence[int | None] = change["permutation"]
        touched = [place for place, origin in enumerate(permutation) if origin != place]
        first, last = 0 in touched, len(permutation) - 1 in touched
        position = POSITIONS[3 if first and last else 0 if first else 2 if last else 1]
        # letters between the first and the last changed one: 0 for neighbours
        between = max(touched[-1] - touched[0] - 1, 0) if touched and position != POSITIONS[3] else 0
        if position == POSITIONS[3] and position not in given.changed:
            position = POSITIONS[0]
        replaced = given.substituted if change["substituted"] else 1.0
        return given.changed.get(position, 0.0) * replaced * given.farther**between

    def _value(self, effects: TrueEffects, purpose: str, trial: Mapping[str, Any]) -> float:
        participant = generator(self.seed, "simulated reader", purpose, self.name)
        item = generator(self.seed, "simulated item", purpose, trial["item_id"])
        value = (
            effects.intercept + participant.gauss(0, effects.participant_sd) + item.gauss(0, effects.item_sd)
        )
        for factor, levels in effects.effects.items():
            level = level_of(trial["condition"], factor)
            if level in levels:
                slope = generator(self.seed, "simulated slope", purpose, self.name, factor, level)
                value += levels[level] + slope.gauss(0, effects.slope_sd)
        return value + effects.learning * math.log1p(self.answered)

    def _given(self, trial: Mapping[str, Any], group: str) -> tuple[Any, str]:
        """Return what decides a trial's answer, and its name: the truth's accuracy or rating, or of a further answer its own."""
        name = trial.get(STEP_NAME)
        given, place = (
            (getattr(self.truth, group), group)
            if name is None
            else (self.truth.steps.get(name), f"steps.{name}")
        )
        if given is None:
            raise UserError(
                f"simulated.json does not say how simulated readers {'rate' if name is None else f'answer {name}'}",
                mend=f"Add {place}: docs/simulated.md shows how.",
            )
        return given, place

    def _rating(self, step: Mapping[str, Any], trial: Mapping[str, Any], lapse: Random | None) -> str:
        """Return a point of a scale: a latent normal value cut at thresholds, or the nearest point."""
        labels, decimals = labels_of(step), step["decimals"]
        if lapse is not None:
            return (
                lapse.choice(labels) if labels else f"{lapse.uniform(step['from'], step['to']):.{decimals}f}"
            )
        if trial["is_attention_check"]:
            return str(trial["answer"])
        given, group = self._given(trial, "rating")
        draw = generator(self.seed, "simulated rating", self.name, trial["trial_index"])
        latent = self._value(given, group, trial) + draw.gauss(0, given.residual_sd)
        if labels and given.thresholds:
            if len(given.thresholds) != len(labels) - 1:
                raise UserError(
                    f"simulated.json: {group}.thresholds has {len(given.thresholds)} numbers, and between {len(labels)} buttons "
                    f"lie {len(labels) - 1}",
                    mend="Give as many, or take thresholds out: the intercept is then in points of the scale.",
                )
            return labels[bisect(given.thresholds, latent)]
        value = min(max(latent, step["from"]), step["to"])
        return labels[round(value - step["from"])] if labels else f"{value:.{decimals}f}"

    def _answers_to_others(self, trial: Mapping[str, Any]) -> list[str]:
        """Return the answers to other items, which a reader may give as well."""
        answers = {item.answer for item in self.items.values() if item.answer is not None}
        return sorted(answers - {trial["answer"], *trial["accepted"]})

    def _response(
        self,
        step: Mapping[str, Any],
        trial: Mapping[str, Any],
        right: bool,
        lapse: Random | None,
        below: Callable[[int], int],
    ) -> str | None:
        if step["step"] in UNANSWERED or step["step"] == OWN_TYPE:
            return None  # a field of its own types holds the answer
        if step["step"] in TYPED:
            is_known = trial["answer"] is not None
            is_free = step.get("read_as", "text") in ("text", "code", "completion")
            if right and lapse is None and (is_known or is_free):
                return str(trial["answer"]) if is_known else "no idea"
            others = self._answers_to_others(trial) if step.get("read_as") == "completion" else ()
            draw = below if lapse is None else lapse.randrange
            return others[draw(len(others))] if others else _wrong_answer(step, trial, draw)
        if step.get("several"):
            return _ticked(step, trial, right, lapse, below)
        if lapse is not None:
            return str(lapse.choice(step["labels"]))
        chosen = [label for label, stands in zip(step["labels"], step["responses"], strict=True)
                  if (stands == trial["answer"]) == right]  # fmt: skip
        chosen = chosen or step["labels"]  # no answer is right
        return str(chosen[below(len(chosen))])


def _ticked(
    step: Mapping[str, Any],
    trial: Mapping[str, Any],
    right: bool,
    lapse: Random | None,
    below: Callable[[int], int],
) -> str:
    """Return the right set of labels, that with one label added or removed, or any in a lapse."""
    labels, wanted = step["labels"], answers_in(trial["answer"])
    is_ticked = [response in wanted for response in step["responses"]]
    if lapse is not None:
        is_ticked = [lapse.random() < 0.5 for _ in labels]
    elif not right:
        place = below(len(labels))
        is_ticked[place] = not is_ticked[place]
    ticked = [label for label, has_tick in zip(labels, is_ticked, strict=True) if has_tick]
    return BETWEEN.join(ticked or [labels[below(len(labels))]])


def _presented(step: Mapping[str, Any], onset: float) -> list[dict[str, Any]]:
    """Return the regions of a text whose parts end by themselves; none if it is shown whole."""
    regions = []
    blank = frames_for(step["blank_ms"]) * FRAME_MS if step["blank_ms"] else 0
    for place, ms in enumerate(step["part_ms"] if step["parts"] else ()):
        frames = frames_for(ms)
        shown = {"frames": frames, "shown_ms": frames * FRAME_MS}
        regions.append({"region": place, "line": None, "onset_ts": onset, **shown})
        onset += frames * FRAME_MS + blank
    return regions


def _wrong_answer(step: Mapping[str, Any], trial: Mapping[str, Any], below: Callable[[int], int]) -> str:
    """Return an incorrect answer of the kind that is asked for: a number, an option, or else the text as shown."""
    if step.get("read_as") == "number":
        value = number_of(str(trial["answer"]), step["decimal"]) or Decimal(0)
        while True:
            value += 1 + below(9)
            number = f"{value:f}".replace(".", step["decimal"])
            if not is_accepted(number, trial["accepted"], "number", decimal=step["decimal"]):
                return number
    if step.get("read_as") == "option":
        others = [option for option in step["options"] if option != trial["answer"]]
        return str((others or step["options"])[below(len(others) or len(step["options"]))])
    return str(step["text"] or step["ask"] or "?")


def _key(set_name: str, item_id: str, condition: Mapping[str, str]) -> tuple[str, str, str]:
    return set_name, item_id, json.dumps(dict(condition), sort_keys=True)


def _said(question: Mapping[str, Any], draw: Random, told: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the answer to a question, or to each row of a matrix, by name."""
    name = question["name"]
    if "rows" not in question:
        return {name: draw.choice(told[name]) if name in told else _any_answer(question, draw)}
    points = [option["value"] for option in question["options"]]
    if question["accept"] is not None:
        return _accepted_rows(question, points)
    return {
        row["name"]: draw.choice([str(answer) for answer in told.get(row["name"], row["accept"] or points)])
        for row in question["rows"]
    }


def _accepted_rows(question: Mapping[str, Any], points: Sequence[str]) -> dict[str, Any]:
    """Return answers to the rows of a matrix whose score lets a reader in: from the lowest score, one row after the other rises."""
    answers: dict[str, Any] = {}
    for low, high in pairwise([points[0], *points]):
        for raised in range(1, len(question["rows"]) + 1):
            for place, row in enumerate(question["rows"]):
                point = high if place < raised else low
                answers[row["name"]] = points[-1 - points.index(point)] if row["is_reversed"] else point
            if is_eligible([dict(question)], answers)[0]:
                return answers
    return answers


def _any_answer(question: Mapping[str, Any], draw: Random) -> Any:
    """Return an answer to a question: an accepted one if the question decides on eligibility."""
    accept = question.get("accept")
    if isinstance(accept, list):
        accept = accept[0]
    if (ends := range_in(accept)) is not None:
        return draw.randint(round(ends[0]), round(ends[1]))
    if accept is not None:
        return accept
    options = [option["value"] for option in question.get("options") or ()]
    if question["type"] in ("several", "vocabulary"):
        return [option for option in options if draw.random() < 0.6]
    if options:
        return draw.choice(options)
    if question["type"] in ("number", "scale", "slider"):
        lowest, highest = question.get("from"), question.get("to")
        return draw.randint(int(0 if lowest is None else lowest), int(100 if highest is None else highest))
    return "simulated"


KeyLog = list[tuple[float, str]]


def typed(text: str, given: Typing, seed: int, name: str, draw: Random) -> KeyLog:
    """Return the keys with which a reader types a text, each with its time after the first in ms."""
    reader_deviation = generator(seed, "simulated reader", "typing", name).gauss(0, given.participant_sd)
    moment, log = 0.0, KeyLog()
    for place, letter in enumerate(text):
        if place:
            moment += given.key_ms * math.exp(reader_deviation + draw.gauss(0, given.residual_sd))
            if text[place - 1].isspace():
                moment += draw.expovariate(1 / given.word_pause_ms) if given.word_pause_ms else 0.0
        log.append((moment, "Enter" if letter == "\n" else letter))
    return log
