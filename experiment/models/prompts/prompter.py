"""Session plans as text: the turns of a session, rendered once per plan and prompt variant, in our words or as a paper's code did.

A turn is the prompt for one trial: its text and question, solved examples before it if any, and how to answer. What precedes it
(instructions, practice, breaks) is separate, because all trials share it: in one prompt per trial, or in a growing
conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from experiment.languages import wording
from experiment.models.engine import Message, Request, Span
from experiment.models.pictures import MARK, FilePicture, Picture
from experiment.parsing.label_sets import label_sets
from experiment.procedure.steps import ALONE, feedback_text, parts_of, scale_ends
from experiment.trials import CHOSEN, OWN_TYPE, RATED, STYLE, TYPED, UNANSWERED, labels_of
from experiment.trials.own import FOLDER, PROMPT, given_of, sha256
from experiment.trust import are_trusted
from stimuli.errors import UserError
from stimuli.papers import papers

_FIELD = re.compile(r"\{(text|question|passage|context|evidence|dialogue|choices|choice_list|letters|lines|label|"
                    r"label_lines|label_list|reply)\}")  # fmt: skip
_OPTION = re.compile(r"\((?P<letter>[A-Z])\) (?P<text>.*)", re.DOTALL)

Presentation = Literal["text", "image"]
BLANK = "\n\n"

_NUMBERED = re.compile(f"{MARK}([0-9]+){MARK}")


@dataclass(frozen=True)
class PromptedTask:
    """The properties of a trial by which a paper selects its prompt.

    ``task``: the item's set, such as a task on a corpus, or, before there are items, the material's keyword; ``fields``: the
    item's fields, the text that changes first; ``is_choice``: whether a label that stands for an option is the answer.
    """

    task: str
    fields: tuple[str, ...]
    has_options: bool
    has_exemplars: bool
    is_choice: bool = False
    thinks: bool = False
    is_local: bool = True

    @property
    def reading(self) -> str:
        """The field whose text changes."""
        return self.fields[0] if self.fields else ""


def options_of(step: Mapping[str, Any]) -> list[str]:
    """Return the options of an answering screen."""
    return list(step.get("options") or step.get("responses") or ())


def asked_of(trial: Mapping[str, Any]) -> PromptedTask:
    """Return the properties of a planned trial by which papers select their prompts."""
    step = trial["steps"][-1]
    return PromptedTask(
        trial["set"],
        tuple(trial["shown"]),
        has_options=bool(options_of(step)),
        is_choice=step["step"] in CHOSEN,
        has_exemplars=bool(trial["exemplars"]),
    )


@dataclass(frozen=True)
class PaperPrompt:
    """A trial in a paper's prompt."""

    text: str  # the one user message
    is_scored: (
        bool  # whether labels are scored if a model reports their probability; the other prompts request text
    )
    max_tokens: int
    stop: tuple[str, ...]  # stop texts of the paper's local models
    temperature: float  # of the paper


@cache
def paper_prompts() -> Mapping[str, Mapping[str, Any]]:
    """Return every prompt of the papers by its name, from the ``prompts.json`` of each.

    A prompt has ``source``, ``item`` and, if there are examples, ``exemplar``. In these, ``{name}`` is a field of the item:
    ``{text}`` is its text that changes, ``{choices}`` its options as (A)one (B)two, ``{choice_list}`` as a Python list,
    ``{lines}`` one per line, ``{letters}`` A through D, ``{label}`` its answer, ``{label_lines}`` and ``{label_list}`` the
    labels one per line. Other braces are part of the prompt. ``stop``: stop texts of the paper's local models; ``template``:
    ``plain`` if open chat models received the text without a chat template; ``scored``: whether labels are compared by
    probability.
    """
    return {
        name: entry
        for paper in papers().values()
        for name, entry in paper.data("prompts.json").items()
        if isinstance(entry, dict)
    }


def name_of(asked: PromptedTask) -> str | None:
    """Return the name of the paper's prompt for a task; papers from other packages take precedence over built-in ones."""
    for paper in reversed(list(papers().values())):
        name: str | None = paper.part(paper.prompt)(asked) if paper.prompt else None
        if name is not None:
            return name
    return None


def paper_prompt(trial: Mapping[str, Any], *, thinks: bool = False, is_local: bool = True) -> PaperPrompt:
    """Return a trial as the paper's code sent it."""
    step = trial["steps"][-1]
    shown = trial["shown"]
    options = step.get("options") or (step.get("labels") if step["step"] in CHOSEN else None)
    name = name_of(replace(asked_of(trial), thinks=thinks, is_local=is_local))
    if name is None:
        raise ValueError(f"no paper's prompt asks what item {trial['item_id']!r} asks")
    prompt = paper_prompts()[name]
    lines = (
        [_filled(prompt["exemplar"], _of_exemplar(exemplar)) for exemplar in trial["exemplars"]]
        if "exemplar" in prompt
        else []
    )
    fields = {**shown, "text": next(iter(shown.values()), step["text"] or "")} | _of_options(options or ())
    if step["step"] in CHOSEN:
        fields |= {"label_lines": " \n".join(step["labels"]), "label_list": "\n".join(step["labels"])}
    text = "\n".join([*lines, _filled(prompt["item"], fields)])
    return PaperPrompt(
        text,
        bool(prompt.get("scored")) and step["step"] in CHOSEN,
        int(prompt["max_tokens"]),
        tuple(prompt.get("stop", ())),
        float(prompt["temperature"]),
    )


def judge_prompt(name: str, reply: str, labels: Sequence[str]) -> PaperPrompt:
    """Return a judge's prompt by its name, filled in with the reply to read."""
    prompt = paper_prompts()[name]
    text = _filled(prompt["item"], {"reply": reply, "label_list": "\n".join(labels)})
    return PaperPrompt(text, False, int(prompt["max_tokens"]), (), float(prompt["temperature"]))


def text_and_options(text: str) -> tuple[str, list[str]]:
    """Return a solved example's text and the lettered options below it, from A on."""
    lines = text.split("\n")
    matches = [_OPTION.fullmatch(line) for line in lines]
    first = next(
        (place for place, match in enumerate(matches) if match and match["letter"] == "A"), len(lines)
    )
    return "\n".join(lines[:first]), lines[first:]


def _filled(template: str, fields: Mapping[str, str]) -> str:
    """Return a template with its known fields filled in; other braces are part of the prompt."""
    return _FIELD.sub(lambda match: fields.get(match[1], match[0]), template)


def _of_options(options: Sequence[str]) -> dict[str, str]:
    letters = [chr(ord("A") + place) for place in range(len(options))]
    if not options:
        return {}
    return {
        "choices": " ".join(f"({letter}){option}" for letter, option in zip(letters, options, strict=True)),
        "choice_list": repr(list(options)),
        "letters": f"{letters[0]} through {letters[-1]}",
        "lines": "\n".join(options),
    }


def _of_exemplar(exemplar: Mapping[str, Any]) -> dict[str, str]:
    """Return a solved example's parts: plans store its text with lettered options below it."""
    text, lines = text_and_options(str(exemplar["text"]))
    options = [match["text"] for line in lines if (match := _OPTION.fullmatch(line))]
    return {"text": text, "question": text, "label": str(exemplar["label"])} | _of_options(options)


def pictured(trial: Mapping[str, Any], *, of_examples: bool) -> tuple[dict[str, Any], list[Picture]]:
    """Return a trial with numbered marks for its texts (and its examples'), and the pictures that they number."""
    pictures: list[Picture] = []

    def marked(text: str, lines: Sequence[str] = (), style: Mapping[str, str] | None = None) -> str:
        pictures.append(Picture.of(text, lines, style))
        return f"{MARK}{len(pictures) - 1}{MARK}"

    def seen(file: Mapping[str, Any]) -> str:
        if file["kind"] != "image":
            return f"[{file['text']}]"
        pictures.append(FilePicture((), name=file["name"], description=file["text"] or ""))
        return f"{MARK}{len(pictures) - 1}{MARK}"

    steps, shown = [], dict(trial["shown"])
    for step in trial["steps"]:
        text = step["text"]
        files = [seen(file) for file in step.get("media", ())]
        if step.get("pictures"):
            step = {**step, "options": [seen(file) for file in step["pictures"]]}
        if not text:
            steps.append({**step, "text": BLANK.join(files), "media": ()} if files else step)
            continue
        style = step.get(STYLE)
        of_step = marked(text, () if step.get("as") in ALONE else step.get("lines") or (), style)
        steps.append({**step, "text": BLANK.join([*files, of_step]), "media": ()})
        fields = [name for name, given in trial["shown"].items() if given and given in text]
        for name in fields:  # papers' prompts use separate fields
            field = trial["shown"][name]
            shown[name] = of_step if field == text else marked(field, style=style)
    exemplars = trial["exemplars"]
    if of_examples and exemplars:
        exemplars = []
        for exemplar in trial["exemplars"]:
            text, options = text_and_options(str(exemplar["text"]))
            exemplars.append({**exemplar, "text": "\n".join([marked(text), *options])})
    return {**trial, "steps": steps, "shown": shown, "exemplars": exemplars}, pictures


def described(trial: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a trial with the descriptions of its pictures, sounds and films, in square brackets, above its texts."""
    if not any(step.get("media") for step in trial["steps"]):
        return trial
    steps = []
    for step in trial["steps"]:
        told = [f"[{file['text'] or file['kind']}]" for file in step.get("media", ())]
        text = BLANK.join([*told, *([step["text"]] if step["text"] else [])])
        steps.append({**step, "text": text, "media": ()} if told else step)
    return {**trial, "steps": steps}


def in_order(content: str, pictures: Sequence[Picture]) -> tuple[str, tuple[Picture, ...]]:
    """Return a rendered text with one mark for each picture, and the pictures in the order of their marks."""
    places = [int(number) for number in _NUMBERED.findall(content)]
    return _NUMBERED.sub(MARK, content), tuple(pictures[place] for place in places)


Strategy = Literal["direct", "chain_of_thought", "unscramble_first"]
MAX_CHOICE_TOKENS = 16
ANSWER_TOKENS, LONG_ANSWER_TOKENS = 128, 1024


@dataclass(frozen=True)
class Turn:
    """The prompt for one trial, without what precedes it."""

    text: str
    labels: tuple[str, ...] | None  # labels to score by log-probability; None requests generated text
    max_tokens: int  # most tokens to generate
    # Texts at which a local model stops generating; an API gets none (its first line is read instead)
    stop: tuple[str, ...] = ()
    # Positions of the regions to read (words, chunks or sentences), in characters of ``text``; empty if nothing is read
    words: tuple[tuple[int, int], ...] = ()
    temperature: float | None = None  # the paper's, for its own prompts
    pictures: tuple[Picture, ...] = ()  # the pictures at the marks in ``text``


def read_step(trial: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the step whose reading is measured: the text that is read, or the target after a prime."""
    steps: Sequence[Mapping[str, Any]] = trial["steps"]
    read = next((step for step in steps if step["step"] in UNANSWERED and step["text"]), None)
    if read is None and any(step["step"] == "prime" for step in steps):
        read = steps[-1] if steps[-1]["text"] and steps[-1]["step"] != OWN_TYPE else None
    return read


class Prompter:
    """Renders the turns of one plan in its ``prompt_variant``, with its own ``wording`` or that of its ``language``."""

    def __init__(
        self,
        plan: Mapping[str, Any],
        *,
        strategy: Strategy = "direct",
        is_local: bool = True,
        presentation: Presentation = "text",
        of_examples: Presentation = "text",
    ) -> None:
        self.words = plan.get("wording") or wording(plan["language"])
        self.own_types = plan.get("own_types", {})
        self.variant = int(plan["prompt_variant"]) - 1
        self.thinks = strategy == "chain_of_thought"
        self.is_local = is_local
        self.is_published = "prompts" in plan.get("published", ())
        self.presentation = presentation
        self.of_examples = of_examples

    def turn(
        self,
        trial: Mapping[str, Any],
        *,
        with_exemplars: bool = True,
        text: str | None = None,
        with_words: bool = True,
    ) -> Turn:
        """Return a trial's turn, with solved examples before it and ``text`` for the part that conditions change."""
        if self.presentation == "image":
            return self._pictured(trial, with_exemplars=with_exemplars)
        trial = described(trial)
        if text is not None:
            trial = _restored(trial, text)
        answering = trial["steps"][-1]
        is_set = answering.get("several", False)
        choices = labels_of(answering) if not is_set else label_sets(answering) if self.is_local else ()
        labels = choices or None
        # only participants stated a rule in the papers: a trial that shows nothing but examples has no paper's prompt
        states_rule = answering["step"] == "answer" and not trial["shown"]
        if self.is_published and not states_rule:
            paper = paper_prompt(trial, thinks=self.thinks, is_local=self.is_local)
            return Turn(
                paper.text,
                labels if paper.is_scored else None,
                paper.max_tokens,
                paper.stop,
                temperature=paper.temperature,
            )
        instruction = self._asked(answering)
        if trial["exemplars"] and with_exemplars:
            parts = self._few_shot(trial, instruction)
        else:
            parts = [self._step_text(step, trial["shown"]) for step in trial["steps"]]
            parts.append("\n".join(instruction))
        parts = [part for part in parts if part]
        content = BLANK.join(parts)
        thinks = self.thinks and answering["step"] not in UNANSWERED
        limit = LONG_ANSWER_TOKENS if thinks else self._room(answering, labels)
        stop = () if thinks else _stop(answering)
        return Turn(
            content,
            None if thinks else labels,
            limit,
            stop,
            self._places(trial, content) if with_words else (),
        )

    def _pictured(self, trial: Mapping[str, Any], *, with_exemplars: bool) -> Turn:
        """Return a trial's turn with pictures instead of its texts."""
        shown, pictures = pictured(trial, of_examples=self.of_examples == "image")
        as_text = copy(self)
        as_text.presentation = "text"
        turn = as_text.turn(shown, with_exemplars=with_exemplars, with_words=False)
        content, ordered = in_order(turn.text, pictures)
        limit = turn.max_tokens
        if not self.is_published:  # room for an answer depends on the displayed text
            limit = as_text.turn(trial, with_exemplars=with_exemplars, with_words=False).max_tokens
        return replace(turn, text=content, pictures=ordered, max_tokens=limit)

    def solved(self, trial: Mapping[str, Any], answer: str, feedback: Mapping[str, Any] | None) -> str:
        """Return a practice trial with its answer as participants saw it: text, question, answer, feedback."""
        lines = [text for step in trial["steps"] if (text := self._step_text(step, trial["shown"]))]
        if trial["steps"][-1]["step"] not in UNANSWERED:
            lines.append(f"{self.words['answer']} {answer}")
        feedback_line = (
            feedback_text(feedback, "correct") if feedback is not None and feedback["accuracy"] else ""
        )
        return (
            BLANK.join([*lines[:-1], "\n".join(part for part in (lines[-1], feedback_line) if part)])
            if lines
            else ""
        )

    def practice(self, solved: Sequence[str]) -> str:
        """Return solved practice trials under their heading."""
        if not solved:
            return ""
        return BLANK.join(
            [self.words["practice"][self.variant], *solved, self.words["practice_over"][self.variant]]
        )

    def unscramble(self, text: str) -> Turn:
        """Return the turn that requests the restored text."""
        content = BLANK.join([self.words["unscramble"][self.variant], text])
        return Turn(content, None, _room_for(text))

    def judge(self, reply: str, labels: Sequence[str]) -> Turn:
        """Return the turn in which a judge decides which label a reply gives; the last label means none."""
        none = self.words["none"]
        content = self.words["judge"][self.variant].format(labels=", ".join(labels), none=none, reply=reply)
        return Turn(content, (*labels, none), MAX_CHOICE_TOKENS)

    @property
    def no_answer(self) -> str:
        """Text of a missing answer in a conversation."""
        return str(self.words["no_answer"])

    def _few_shot(self, trial: Mapping[str, Any], instruction: Sequence[str]) -> list[str]:
        """Return the parts of a few-shot prompt: question, solved trials, trial; the question comes last if nothing else is shown."""
        *before, answering = trial["steps"]
        instruction_lines = list(instruction)
        ending = (
            instruction_lines.pop()
            if instruction_lines and instruction_lines[-1] == self.words["answer"]
            else ""
        )
        question = "\n".join(line for line in (answering.get("ask"), *instruction_lines) if line)
        solved = [
            f"{_captioned(answering, exemplar['text'])}\n{self.words['answer']} {exemplar['label']}"
            for exemplar in trial["exemplars"]
        ]
        closing = ending or ("" if self.thinks else self.words["answer"])
        if not _with_options(answering):
            asks = [line for line in (answering.get("ask"), *instruction) if line]
            return [
                *(self._step_text(step, trial["shown"]) for step in before),
                self.words["exemplars"][self.variant],
                *solved,
                "\n".join(asks),
            ]
        last = "\n".join(part for part in (_with_options(answering), closing) if part)
        return [
            *(self._step_text(step, trial["shown"]) for step in before),
            question,
            self.words["exemplars"][self.variant],
            *solved,
            self.words["item"],
            last,
        ]

    def _step_text(self, step: Mapping[str, Any], shown: Mapping[str, str]) -> str:
        if step["step"] == OWN_TYPE:
            return prompt_text(self.own_types[step["type"]], step, shown)
        return _with_options(step, step.get("ask") or "")

    def _asked(self, step: Mapping[str, Any]) -> list[str]:
        """Return the lines that explain how to answer, if the trial needs an answer."""
        words, answer, labels = self.words, self.words["answer"], ", ".join(labels_of(step))
        scale = [self._variant_of("scale").format(**scale_ends(step))] if step["step"] in RATED else []
        if step.get("several"):
            how = self._variant_of("choose_several").format(labels=labels)
            return (
                [how, words["think_typed"][self.variant].format(answer=answer)]
                if self.thinks
                else [how, answer]
            )
        if self.thinks and labels:
            return [*scale, words["think_choose"][self.variant].format(labels=labels, answer=answer)]
        if self.thinks and step["step"] in (*TYPED, *RATED):
            kind = "think_code" if step.get("read_as") == "code" else "think_typed"
            return [*scale, words[kind][self.variant].format(answer=answer)]
        if labels or scale:
            how = (
                words["choose"][self.variant].format(labels=labels)
                if labels
                else self._variant_of("rate_number")
            )
            return [*scale, how, answer]
        if step["step"] == "answer" and step["multiline"] and step["read_as"] == "text":
            return []  # only the study's question states how long an answer should be
        name = f"answer_{step['read_as']}" if step["step"] == "answer" else step["step"]
        if step["step"] not in TYPED:
            return []
        return [self._variant_of(name), answer]

    def _variant_of(self, name: str) -> str:
        """Return the plan's variant of a prompt, which the study's own texts may lack."""
        if name not in self.words:
            raise UserError(
                f"no prompt {name!r} tells models how to answer these trials",
                mend=f"Add {name!r} with five variants to the prompts of texts.json."
                if name in wording("en")
                else f"Add {name!r} with five variants to every language in experiment/languages/wording.json.",
            )
        return str(self.words[name][self.variant])

    def _room(self, step: Mapping[str, Any], labels: tuple[str, ...] | None) -> int:
        """Return output tokens for repeating the text, one per character for byte-level models, with a margin."""
        if labels is not None:
            return MAX_CHOICE_TOKENS
        if step["step"] in UNANSWERED:
            return 0
        if step["step"] in (*RATED, *CHOSEN, OWN_TYPE):
            return ANSWER_TOKENS
        if step["step"] == "answer":
            return ANSWER_TOKENS if _stop(step) else LONG_ANSWER_TOKENS
        return _room_for(step["text"] or "")

    def _places(self, trial: Mapping[str, Any], content: str) -> tuple[tuple[int, int], ...]:
        """Return the positions of the regions to read; the step's text follows exemplars and earlier steps."""
        step = read_step(trial)
        if step is None:
            return ()
        begin = 0
        for earlier in trial["steps"]:
            if earlier is step:
                break
            place = content.find(earlier["text"], begin) if earlier["text"] else -1
            begin = begin if place < 0 else place + len(earlier["text"])
        if trial["exemplars"] and step is trial["steps"][-1]:
            begin = content.rindex(self.words["item"]) if self.words["item"] in content else begin
        end = content.index(step["text"], begin)
        places = []
        for region in parts_of(step):
            begin = content.index(region, end)
            end = begin + len(region)
            places.append((begin, end))
        return tuple(places)


def changed_field(trial: Mapping[str, Any]) -> str | None:
    """Return the field that conditions change and a step shows; None if there is none (a withheld text)."""
    texts = [step["text"] for step in trial["steps"] if step["text"]]
    return next(
        (
            name
            for name in trial["intact"]
            if (shown := trial["shown"].get(name)) and any(shown in text for text in texts)
        ),
        None,
    )


def _restored(trial: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return a trial with its changed text replaced, even if a step also shows other fields."""
    name = changed_field(trial)
    if name is None:
        return dict(trial)
    shown = trial["shown"][name]
    steps = [
        {**step, "text": step["text"].replace(shown, text), "parts": None}
        if step["text"] and shown in step["text"]
        else step
        for step in trial["steps"]
    ]
    return {**trial, "steps": steps, "shown": {**trial["shown"], name: text}}


def _with_options(step: Mapping[str, Any], question: str = "") -> str:
    """Return a step's text, its question, and its options if they have letters."""
    lines = [_captioned(step, step["text"] or ""), question]
    if step["step"] in CHOSEN and step.get("options"):  # options of an answer are in its text
        lines += [
            f"({label}) {option}" for label, option in zip(step["labels"], step["options"], strict=True)
        ]
    return "\n".join(line for line in lines if line)


def _captioned(step: Mapping[str, Any], text: str) -> str:
    return f"{step['caption']}: {text}" if step["caption"] and text else text


def _stop(step: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the stop texts of a one-line answer; numbers and programs may follow several lines of work."""
    one_line = (
        step["step"] in TYPED
        and not step.get("multiline")
        and step.get("read_as", "text") in ("text", "completion")
    )
    return ("\n",) if one_line else ()


def _room_for(text: str) -> int:
    return max(32, min(4096, len(text.encode("utf-8")) * 5 // 4 + 16))


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )


def prompt_text(about: Mapping[str, Any], step: Mapping[str, Any], shown: Mapping[str, str]) -> str:
    """Return the prompt of a step of an own type, for which ``about`` is what the plan says about the type.

    It is not rendered before the user has agreed to it (``wrods trust``): until then it is the template as written, so that
    `wrods check` can estimate its length.
    """
    source = about["prompt"]
    if source is None or not are_trusted([sha256(source)]):
        return "\n".join(filter(None, (source, step["text"])))
    try:
        return _environment().from_string(source).render(plan=given_of(step), item=dict(shown)).strip()
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise UserError(
            f"{FOLDER}/{step['type']}/{PROMPT}: {error}",
            mend="Correct the prompt, then give `wrods trust` again.",
        ) from error


def render(plan: Mapping[str, Any], trial: Mapping[str, Any]) -> Request:
    """Return the request for a single trial without practice; with `published: [prompts]`, as the paper's code sent it."""
    prompter = Prompter(plan)
    turn = prompter.turn(trial)
    before = "" if prompter.is_published else instructions_before(plan, trial)
    content = BLANK.join(part for part in (before, turn.text) if part)
    shift = len(content) - len(turn.text)
    regions = tuple(Span(0, begin + shift, end + shift) for begin, end in turn.words)
    message = Message("user", content)
    return Request("", (message,), turn.labels, turn.max_tokens, 0.0, 0, turn.stop, regions=regions)


def instructions_before(plan: Mapping[str, Any], trial: Mapping[str, Any]) -> str:
    """Return the instructions that a reader has read before a trial: every page before its screen."""
    pages: list[str] = []
    for screen in plan["screens"]:
        if screen.get("block") == trial["block"] and "trials" in screen:
            break
        if screen["kind"] == "instructions":
            pages += [page["text"] for page in screen["pages"]]
    return BLANK.join(page for page in pages if page)
