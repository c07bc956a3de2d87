"""One session of a model: its work keys, its requests, follow-up requests after each reply, and regions."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from experiment.completions import COMPLETION, GivenCompletions, completions_in
from experiment.models.engine import ANSWERS, UNFINISHED, Message, RegionScore, Reply, Request, Span
from experiment.models.planning.prompting_settings import DIGEST, SessionTemplate, right_answer
from experiment.models.prompts.prompter import BLANK, Turn, changed_field, read_step
from experiment.parsing.free_answers import completion_of
from experiment.parsing.label_sets import label_sets
from experiment.parsing.restored import parse_recovered
from experiment.parsing.text import without_thought
from experiment.procedure import Plan, PlannedTrial
from experiment.procedure.plan_builder import STEP_NAME
from experiment.procedure.steps import (
    feedback_text,
    foils_shown,
    intact_parts,
    parts_of,
    points_of_slider,
    region_lines,
    region_names,
    verdict_of,
)
from experiment.scoring.published import in_its_form
from experiment.scoring.sandbox import read_reply
from experiment.scoring.trial import Score, log_likelihood, own_reply_score, score_trial, status_for_scoring
from experiment.trials import OWN_TYPE, UNANSWERED, labels_of
from stimuli.seeds import stable_seed

UNSCRAMBLE = "unscramble"
"""Purpose of the call that requests the restored text."""


def given_back(reply: str | None, status: str) -> str:
    """Return the text of a finished call from which to continue; empty if it was truncated, refused or empty."""
    return reply or "" if status == "answered" else ""


def restored_text(shown: str, reply: str) -> str | None:
    """Return a shown text as restored in a reply (one line by one line); None if the reply has none, so the text stays as shown."""
    without_reasoning = without_thought(reply)
    return parse_recovered(without_reasoning, multiline="\n" in shown.strip(), shown=shown).value


def is_restored(reply: str | None, status: str) -> bool:
    """Return whether a reply restores a whole text, or states that it was intact."""
    without_reasoning = without_thought(given_back(reply, status))
    return parse_recovered(without_reasoning, multiline=True, shown="").status == "valid"


_SEED_BITS = 63


@dataclass(frozen=True)
class TrialFeedback:
    """The answer to a trial, and the feedback its reader received."""

    text: str | None  # the answer as received, or None
    correct: bool | None = None  # the first score, on which feedback was based
    timed_out: bool = False  # whether a participant's time ran out


@dataclass(frozen=True)
class Person:
    """A participant's session, as a model follows it."""

    session_id: str
    plan: Plan  # as it was shown
    answers: Mapping[int, TrialFeedback]  # by trial index


@dataclass(frozen=True)
class SessionTaker:
    """Who takes a session: the model's name in the study, the replicate, the seed of its draws, and how replies are scored."""

    reader: str
    seed: int
    replicate: int = 1
    scorer: str | None = None


Completions = Mapping[tuple[str, str], Sequence[GivenCompletions]]
MOST_COMPLETIONS = 100
"""Most of people's completions of an item whose probability a model reports, the most frequent first."""


class ModelSession:
    """One session for a model to complete; ``name`` and its script identify it, ``person`` is the participant it follows.

    Work keys identify trials: ``key`` is the answer's, ``key:unscramble`` that of the call before it. Replies of one session
    are passed to :meth:`follow` one after another; different sessions may be followed at once.
    """

    def __init__(
        self,
        script: SessionTemplate,
        name: Sequence[object],
        taken_by: SessionTaker,
        person: Person | None = None,
        completions: Completions = MappingProxyType({}),
    ) -> None:
        self.script = script
        self._completions = completions
        self.manner = script.manner
        self.plan: Plan = {**script.plan, "replicate": taken_by.replicate}
        self.yoked_to = None if person is None else person.session_id
        self.session_id = canonical_hash([*name, hashlib.sha256(script.digests).hexdigest()])[:32]
        self._seed = taken_by.seed
        self._reader = taken_by.reader
        self._scorer = taken_by.scorer
        self._person = person if self.manner.context == "teacher_forced" else None
        self._told: dict[int, TrialFeedback] = {}
        self._done: set[int] = set()
        self._as_shown: set[str] = set()
        self._said: list[Message] = []
        self._said_places = 0
        if self._person is not None:
            indices = {place.trial["trial_index"]: number for number, place in enumerate(script.places)}
            self._told = {
                indices[index]: feedback
                for index, feedback in self._person.answers.items()
                if index in indices
            }

    @cached_property
    def numbers(self) -> Sequence[int]:
        """The places in the script that are prompted: all, or those whose human answer is to be scored."""
        if self._person is None:
            return range(len(self.script.places))
        return [number for number in range(len(self.script.places)) if self._is_scored(number)]

    @property
    def keys(self) -> Iterator[str]:
        """The work key of each trial, in order."""
        return (self._key(number) for number in self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def leads_on(self) -> bool:
        """Whether a reply may have follow-up requests."""
        manner = self.manner
        in_talk = manner.context != "independent" and self._person is None
        in_talk = in_talk or any(STEP_NAME in trial for trial in self.trials)
        return in_talk or manner.practice == "answered" or manner.strategy == "unscramble_first"

    @property
    def trials(self) -> Iterator[PlannedTrial]:
        """The trials that are prompted, in the order of :attr:`keys`."""
        return (self.script.places[number].trial for number in self.numbers)

    def begin(
        self, stored: Mapping[int, TrialFeedback], calls: Mapping[str, str] | None = None
    ) -> list[Request]:
        """Return the requests that can be sent now."""
        for number in self.numbers:
            feedback = stored.get(self.script.places[number].trial["trial_index"])
            if feedback is not None:
                self._note(number, feedback)
        return [self._first(number, calls or {}) for number in self._ready()]

    def follow(self, reply: Reply) -> list[Request]:
        """Return the follow-up requests of a reply: an answer after a restored text, the next turn, or none."""
        key, _, purpose = reply.work_key.partition(":")
        number = self._number(key)
        if reply.status in UNFINISHED:
            return []
        if purpose == UNSCRAMBLE:
            return [self._answer(number, restored=given_back(reply.text, reply.status))]
        if not self._waits(number):
            return []
        verdict = self.verdict(reply)
        self._note(
            number, TrialFeedback(self.response_raw(reply), None if verdict is None else verdict.correct)
        )
        if self._is_in_order(number):
            return [self._first(place, {}) for place in self._ready()]
        return [self._first(number + 1, {})]

    def trial_of(self, work_key: str) -> PlannedTrial:
        """Return the trial of a work key."""
        return self.script.places[self._number(work_key.partition(":")[0])].trial

    def trials_lost_with(self, work_key: str) -> list[PlannedTrial]:
        """Return the trials that cannot be answered if a work key's is not: its own, and further answers about it."""
        number = self._number(work_key.partition(":")[0])
        end = number + 1
        while self._person is None and self._is_further(end):
            end += 1
        return [place.trial for place in self.script.places[number:end]]

    def mark_of(self, work_key: str) -> str:
        """Return ``+as_shown`` if a text was to be restored and the reply has none, else an empty text."""
        return "+as_shown" if work_key in self._as_shown else ""

    def verdict(self, reply: Reply) -> Score:
        """Return the score of a reply; in a teacher-forced session the log-likelihood of the participant's answer."""
        number = self._number(reply.work_key.partition(":")[0])
        trial = self.script.places[number].trial
        if self._person is not None:
            return log_likelihood(trial, str(self._told[number].text), reply.label_logprobs)
        thinks = self.manner.strategy == "chain_of_thought"
        status = status_for_scoring(reply.status, reply.text, reply.label_logprobs, reply.reasoning)
        if trial["steps"][-1]["step"] == OWN_TYPE:
            return own_reply_score(trial, self.recorded(reply), reply.text, status)
        return score_trial(
            trial,
            _written(trial, reply),
            reply_status=status,
            thinks=thinks,
            parser=self._scorer,
            label_logprobs=reply.label_logprobs,
        )

    def recorded(self, reply: Reply) -> dict[str, Any] | None:
        """Return what the parser of a lab's own trial type reads in a reply, by type; None if the trial has none, or it reads none."""
        step = self.trial_of(reply.work_key)["steps"][-1]
        if step["step"] != OWN_TYPE or not reply.text:
            return None
        fields, _ = read_reply(self.plan["own_types"][step["type"]], step, without_thought(reply.text) or "")
        return None if fields is None else {step["type"]: fields}

    def response_raw(self, reply: Reply) -> str | None:
        """Return the response for the trials table: the reply, or the human answer whose likelihood was requested."""
        if self._person is not None:
            return self._told[self._number(reply.work_key.partition(":")[0])].text
        return _written(self.trial_of(reply.work_key), reply)

    def region_rows(self, reply: Reply) -> list[dict[str, Any]]:
        """Return the rows of the regions table for a reply."""
        return region_rows(self.trial_of(reply.work_key), reply.regions) if reply.regions else []

    def margin(self, reply: Reply) -> float | None:
        """Return by how much the best label leads, in nats; None for continuations, of which others are possible."""
        is_free = self.trial_of(reply.work_key)["steps"][-1].get("read_as") == COMPLETION
        return None if is_free else reply.margin

    def surprisal(self, reply: Reply) -> float | None:
        """Return the surprisal of the text that a trial shows for reading, in bits."""
        return _bits(reply.surprisal)

    def right_answers(self) -> dict[str, str]:
        """Return the correct answer by work key, for readers that look it up."""
        answers = {}
        for number, key in zip(self.numbers, self.keys, strict=True):
            trial = self.script.places[number].trial
            answer = right_answer(trial)
            if self._scorer is not None:
                answer = in_its_form(trial, answer)
            if self._person is not None:
                answer = str(self._told[number].text)
            answers[key] = answer
        return answers

    def choices(self) -> dict[str, tuple[str, ...]]:
        """Return the possible choices by work key, whether or not labels are scored; of a slider the numbers on it."""
        steps = ((key, trial["steps"][-1]) for key, trial in zip(self.keys, self.trials, strict=True))
        return {
            key: choices
            for key, step in steps
            if (choices := label_sets(step) or labels_of(step) or points_of_slider(step))
        }

    def _key(self, number: int) -> str:
        digest = self.script.digests[number * DIGEST : (number + 1) * DIGEST]
        return hashlib.sha256(b"%s/%d/%s" % (self.session_id.encode(), number, digest)).hexdigest()

    @cached_property
    def _numbers_by_key(self) -> dict[str, int]:
        return {self._key(number): number for number in self.numbers}

    def _number(self, key: str) -> int:
        return self._numbers_by_key[key]

    def _is_scored(self, number: int) -> bool:
        trial, feedback = self.script.places[number].trial, self._told.get(number)
        if (
            feedback is None
            or not (feedback.text or "").strip()
            or trial["is_practice"]
            or trial["trial_type"] in UNANSWERED
        ):
            return False
        step = trial["steps"][-1]
        return not labels_of(step) or feedback.text in step["labels"]

    def _before(self, number: int) -> range:
        """Return the first places, whose answers precede a trial."""
        if self.manner.context != "independent":
            return range(number)
        if self.manner.practice == "answered":
            return range(min(number, self.script.practice))
        return range(0)

    def _about(self, number: int) -> range:
        """Return the places before a further answer that are about the same item, and not among the first places."""
        first = number
        while self._is_further(first):
            first -= 1
        return range(max(first, len(self._before(number))), number)

    def _is_further(self, number: int) -> bool:
        return number < len(self.script.places) and STEP_NAME in self.script.places[number].trial

    def _is_in_order(self, number: int) -> bool:
        """Return whether all later requests depend on the answer at a place."""
        in_talk = self.manner.context != "independent"
        return in_talk or (self.manner.practice == "answered" and number < self.script.practice)

    def _waits(self, number: int) -> bool:
        """Return whether other requests depend on the answer at a place."""
        return self._person is None and (self._is_in_order(number) or self._is_further(number + 1))

    def _note(self, number: int, feedback: TrialFeedback) -> None:
        self._done.add(number)
        if self._waits(number):
            self._told[number] = feedback

    def _ready(self) -> list[int]:
        """Return the places that can be prompted now and are not answered."""
        missing = (number for number in self.numbers if number not in self._done)
        if self._person is not None:
            return list(missing)
        first = next(missing, None)
        if first is None:
            return []
        if self._is_in_order(first):
            return [first]
        return [number for number in (first, *missing) if self._done.issuperset(self._about(number))]

    def _first(self, number: int, calls: Mapping[str, str]) -> Request:
        """Return a trial's first request: its answer, or the call before it if its text is not stored yet."""
        trial = self.script.places[number].trial
        if self.manner.strategy != "unscramble_first" or (field := changed_field(trial)) is None:
            return self._answer(number)
        key = f"{self._key(number)}:{UNSCRAMBLE}"
        if (before := calls.get(key)) is not None:
            return self._answer(number, restored=before)
        turn = self.script.prompter.unscramble(trial["shown"][field])
        return self._request(number, key, (Message("user", turn.text),), turn, purpose=UNSCRAMBLE)

    def _answer(self, number: int, *, restored: str | None = None) -> Request:
        trial, text = self.script.places[number].trial, None
        if restored is not None and (field := changed_field(trial)) is not None:
            text = restored_text(str(trial["shown"][field]), restored)
        turn = self.script.turn(number, text=text)
        messages, shift = self._messages(number, turn.text)
        if turn.pictures:
            messages = (*messages[:-1], replace(messages[-1], pictures=turn.pictures))
        if self._person is not None:
            turn = replace(turn, labels=turn.labels or (str(self._told[number].text),))
        elif known := self._known_completions(trial):
            turn = replace(turn, labels=known)
        reads = self.manner.reads and restored is None
        last = len(messages) - 1
        step = read_step(trial) if reads else None
        spans = zip(turn.words, foils_shown(step), strict=True) if step is not None and turn.words else ()
        regions = tuple(Span(last, begin + shift, end + shift, foil) for (begin, end), foil in spans)
        turn = turn if self.manner.stops else replace(turn, stop=())
        purpose = "read" if trial["trial_type"] in UNANSWERED else "answer"
        key = self._key(number)
        request = self._request(number, key, messages, turn, purpose=purpose, regions=regions)
        if restored is not None:
            (self._as_shown.discard if text is not None else self._as_shown.add)(request.work_key)
        return request

    def _known_completions(self, trial: PlannedTrial) -> tuple[str, ...]:
        """Return the continuations of a trial's text whose probability a local model reports: the item's answers and people's."""
        step = trial["steps"][-1]
        if not self.manner.is_local or self.manner.strategy != "direct" or step.get("read_as") != COMPLETION:
            return ()
        spelt = {completion_of(answer): answer for answer in trial["accepted"]}
        of_item = self._completions.get((trial["set"], trial["item_id"]), ())
        _, counts, spellings = completions_in(of_item, trial["condition"])
        for text, _ in counts.most_common(MOST_COMPLETIONS):
            spelt.setdefault(text, spellings[text])
        return tuple(spelt.values())

    def _request(
        self,
        number: int,
        key: str,
        messages: tuple[Message, ...],
        turn: Turn,
        *,
        purpose: str,
        regions: tuple[Span, ...] = (),
    ) -> Request:
        manner, trial = self.manner, self.script.places[number].trial
        plan = self.plan
        place = (
            self._reader,
            plan["list_id"],
            plan["prompt_variant"],
            plan["replicate"],
            trial["trial_index"],
        )
        more = (self.yoked_to,) if self.yoked_to is not None else ()
        stream = "sampling" if purpose in ANSWERS else f"sampling {purpose}"
        seed = stable_seed(self._seed, stream, trial["item_id"], *place, *more)
        limit = turn.max_tokens
        if purpose == UNSCRAMBLE:
            # the model's own limit applies to its answers
            limit = max(limit, manner.max_tokens or 0)
        elif purpose != "read":
            limit = manner.max_tokens or limit
        is_free = trial["steps"][-1].get("read_as") == COMPLETION
        temperature = manner.temperature if manner.temperature is not None else turn.temperature
        return Request(
            work_key=key,
            messages=messages,
            labels=turn.labels,
            max_tokens=limit,
            temperature=temperature or 0.0,
            seed=seed >> (64 - _SEED_BITS),
            stop=turn.stop,
            also_text=(manner.also_text or is_free) and turn.labels is not None and self._person is None,
            regions=regions,
            states=manner.states if purpose != UNSCRAMBLE else (),
            top_p=manner.top_p,
            top_k=manner.top_k,
            purpose=purpose,
        )

    def _messages(self, number: int, text: str) -> tuple[tuple[Message, ...], int]:
        """Return all turns up to a trial, and the start of the trial's own text in the last of them."""
        before = len(self._before(number))
        self._say(before)
        has_system = before > 0 and self._said[0].role == "system"
        conversation = self._said[: 2 * before + has_system]
        for place in self._about(number):
            conversation = [*conversation, *self._exchange(place, is_first=not conversation)]
        messages, shift = self._user(number, text, is_first=not conversation)
        return (*conversation, *messages), shift

    def _exchange(self, number: int, *, is_first: bool) -> list[Message]:
        """Return a turn with its answer."""
        turn = self.script.turn(number)
        messages, _ = self._user(number, turn.text, is_first=is_first)
        if turn.pictures:
            messages[-1] = replace(messages[-1], pictures=turn.pictures)
        text = self._told[number].text if number in self._told else None
        answer = text if text and text.strip() else self.script.prompter.no_answer
        return [*messages, Message("assistant", answer)]

    def _say(self, places: int) -> None:
        """Build the conversation of the first places, each with its answer."""
        while self._said_places < places:
            self._said += self._exchange(self._said_places, is_first=self._said_places == 0)
            self._said_places += 1

    def _user(self, number: int, text: str, *, is_first: bool) -> tuple[list[Message], int]:
        lead = "" if self._is_further(number) else self.script.places[number].lead
        messages: list[Message] = []
        if is_first and self.manner.system and lead:
            messages, lead = [Message("system", lead)], ""
        before = BLANK.join(part for part in ("" if is_first else self._feedback(number), lead) if part)
        content = BLANK.join(part for part in (before, text) if part)
        return [*messages, Message("user", content)], len(content) - len(text)

    def _feedback(self, number: int) -> str:
        """Return the feedback on the trial before a place in the conversation; empty if there is none."""
        if self._is_further(number):
            return ""
        last = next((place for place in reversed(self._before(number)) if not self._is_further(place)), None)
        if last is None:
            return ""
        place, feedback = self.script.places[last], self._told.get(last)
        if not self.manner.feedback or feedback is None or place.feedback is None:
            return ""
        verdict = verdict_of(
            place.feedback, place.trial, correct=feedback.correct, timed_out=feedback.timed_out
        )
        if verdict is None:
            return ""
        answer = right_answer(place.trial) if place.trial["is_practice"] else None
        return feedback_text(place.feedback, verdict, answer)


def _written(trial: Mapping[str, Any], reply: Reply) -> str | None:
    """Return a reply's text: where continuations were scored as well, what the model wrote itself."""
    is_free = trial["steps"][-1].get("read_as") == COMPLETION and reply.label_logprobs is not None
    return reply.generated if is_free else reply.text


def words_of(trial: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the regions that a trial shows for reading: words, or the parts by which people read, with the intact forms."""
    step = read_step(trial)
    if step is None:
        return []
    regions = zip(
        parts_of(step), intact_parts(trial, step), region_lines(step), foils_shown(step), strict=True
    )
    return [
        {
            "region": place,
            "shown": shown,
            "intact": intact,
            "is_changed": None if intact is None else intact != shown,
            "line": line,
            "region_names": region_names(trial, place),
            "foil": foil,
        }
        for place, (shown, intact, line, foil) in enumerate(regions)
    ]


def region_rows(trial: Mapping[str, Any], scores: Sequence[RegionScore]) -> list[dict[str, Any]]:
    """Return a trial's rows of the regions table, with surprisal in bits; empty if the engine reported none."""
    words = words_of(trial)
    if len(scores) != len(words):
        return []
    return [
        word
        | {
            "surprisal": _bits(score.surprisal),
            "entropy": _bits(score.entropy),
            "tokens": score.tokens,
            "margin": None
            if score.foil is None or score.surprisal is None
            else _bits(score.foil - score.surprisal),
        }
        for word, score in zip(words, scores, strict=True)
    ]


def _bits(nats: float | None) -> float | None:
    return None if nats is None else nats / math.log(2)


def canonical_hash(value: object) -> str:
    """Return the SHA-256 of a JSON value in canonical form (sorted keys, no blanks, UTF-8)."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def request_json(request: Request) -> dict[str, Any]:
    """Return a request as JSON for the store, without unused parts."""
    described: dict[str, Any] = {
        "messages": [_said(message) for message in request.messages],
        "labels": None if request.labels is None else list(request.labels),
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "stop": list(request.stop),
    }
    if request.top_p != 1.0:
        described["top_p"] = request.top_p
    if request.top_k is not None:
        described["top_k"] = request.top_k
    if request.also_text:
        described["also_text"] = True
    if request.regions:
        described["regions"] = [
            [span.message, span.start, span.end, *([span.foil] if span.foil else [])]
            for span in request.regions
        ]
    if request.states:
        described["states"] = list(request.states)
    return described


def _said(message: Message) -> dict[str, Any]:
    described: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.pictures:
        described["pictures"] = [picture.to_json() for picture in message.pictures]
    return described


def request_key(identity: Mapping[str, object], request: Request) -> str:
    """Return the hash of a request and its model, independent of its place in a study."""
    return canonical_hash({"model": dict(identity), "request": request_json(request)})
