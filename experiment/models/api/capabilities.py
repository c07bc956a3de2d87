"""What one model behind one address can give, in plain sentences, so that a study is held against it beforehand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Literal

from stimuli.errors import unknown_name

Need = Literal[
    "choices",
    "label_logprobs",
    "long_labels",
    "likelihoods",
    "surprisal",
    "states",
    "sampling",
    "system_role",
    "reasoning",
    "pictures",
]
NEEDS: tuple[Need, ...] = (
    "choices", "label_logprobs", "long_labels", "likelihoods", "surprisal", "states", "sampling", "system_role", "reasoning",
    "pictures",
)  # fmt: skip
"""What an analysis may ask of a model: answers to choices, their probabilities (labels of one token, or longer), how likely
a person's answers are to it, surprisal of regions, hidden states, samples that differ from replicate to replicate, a system
message, thoughts, a look at pictures."""


UNTRIED = "not tried"


@dataclass(frozen=True)
class Capabilities:
    """What a probe found out."""

    model: str  # what was asked, and in which form
    base_url: str
    api: str
    resolved_model: str | None = None  # what the server says it is
    top_logprobs: int = 0  # alternatives told at each answer token; 0 where none are
    prompt_logprobs: bool = False  # whether log-probabilities of the prompt's tokens are told
    # whether the same prompt had the same ones twice; None where none are told
    stable_prompt_logprobs: bool | None = None
    seed: bool = False  # whether the server takes them
    # whether one seed gave the same text twice and another gave another; None where this was not seen
    heeds_seed: bool | None = None
    # whether draws at temperature 1 differed at all; None where nothing was drawn
    draws_differ: bool | None = None
    # fields that it takes and that switch off its own sampling: `top_k`, `min_p`, penalties
    unfiltered: tuple[str, ...] = ()
    temperature: bool = False
    system_role: bool = False
    structure: str = "none"  # how answers can be held to labels: one of STRUCTURES, `none`, or UNTRIED
    thinks: bool = False  # whether it thinks before it answers, as asked
    reasoning_counts: bool = False  # whether the tokens of thoughts are counted apart
    cached_counts: bool = False  # whether tokens from the provider's own cache are counted apart
    pictures: bool | None = None  # whether it read a word from a picture; None where the study shows it none
    limit_name: str = "max_tokens"
    requests: int = 0  # requests that the probe took
    answered: bool = False  # whether any of them was answered
    remarks: tuple[str, ...] = ()  # what else was seen

    def describe(self) -> dict[str, object]:
        """Return everything as JSON, with the sentences."""
        lists = {"remarks": list(self.remarks), "unfiltered": list(self.unfiltered)}
        return {**asdict(self), **lists, "sentences": self.sentences()}

    def sentences(self) -> list[str]:
        """Say in plain words what the model can and cannot give."""
        return [
            self._of_labels(),
            "It tells log-probabilities of the prompt: surprisal of regions, and labels of any length (label_scoring: whole)."
            if self.prompt_logprobs
            else "It tells no log-probabilities of the prompt: no surprisal, and no probability of labels longer than one token.",
            *(
                [
                    "The same prompt had different log-probabilities twice, as servers with prefix caching give them: start the "
                    "server without it (vLLM: --no-enable-prefix-caching) before surprisal is a measure."
                ]
                if self.stable_prompt_logprobs is False
                else []
            ),
            "It tells no hidden states: only local models do.",
            *self._of_draws(),
            "It takes a system message."
            if self.system_role
            else "It takes no system message: its text opens the first message of the user.",
            self._of_structure(),
            self._of_thoughts(),
            *(["It reads a word from a picture."] if self.pictures else []),
            *self.remarks,
        ]

    def _of_labels(self) -> str:
        if self.top_logprobs:
            return (
                f"It tells the {self.top_logprobs} most probable first tokens of an answer: labels of one token get a "
                "log-probability where they are among them, and a bound where not."
            )
        return "It tells no log-probabilities of answers: choices are read from what it writes."

    def _of_draws(self) -> list[str]:
        drawn = [
            "It takes a temperature." if self.temperature else "It refuses a temperature: its own is used."
        ]
        if not self.seed:
            drawn.append("It takes no seed: a sample cannot be drawn again.")
        elif self.heeds_seed is None:
            drawn.append("It takes a seed; whether it heeds it was not seen.")
        elif self.heeds_seed:
            drawn.append("It heeds a seed: the same one gave the same text twice.")
        if self.unfiltered:
            drawn.append(
                f"It takes {', '.join(self.unfiltered)}, which switch off sampling of its own, or ignores them."
            )
        return drawn

    def _of_structure(self) -> str:
        if self.structure == UNTRIED:
            return "Whether answers can be held to the labels was not tried, since it thinks and label_only is not set."
        if self.structure == "none":
            return "Answers cannot be held to the labels: a parser reads them."
        return f"Answers can be held to the labels ({self.structure})."

    def _of_thoughts(self) -> str:
        if not self.thinks:
            return "It answers without a thought before, or does not count it."
        counted = "counted apart" if self.reasoning_counts else "not counted apart"
        return f"It thinks before it answers; the tokens of thoughts are {counted}. Leave room for them: thinking_tokens."

    def gaps(self, needs: Collection[Need]) -> list[str]:
        """Say which of an analysis's needs this model does not meet; empty where it meets all."""
        missing = {
            "label_logprobs": (
                bool(self.top_logprobs or self.prompt_logprobs),
                "tells no probabilities of labels: margins and label_logprobs stay empty, and choices are read from its text",
            ),
            "long_labels": (
                self.prompt_logprobs,
                "tells no probabilities of labels longer than one token: such choices are read from its text",
            ),
            "likelihoods": (
                bool(self.top_logprobs or self.prompt_logprobs),
                "tells no probabilities of answers: how likely people's answers are to it cannot be known, and a run stops",
            ),
            "surprisal": (self.prompt_logprobs, "tells no surprisal: regions of models stay empty"),
            "states": (False, "tells no hidden states: only local models do"),
            "sampling": (
                self.temperature and self.draws_differ is not False,
                "refuses a temperature: its replicates are drawn at its own"
                if not self.temperature
                else "wrote the same at temperature 1 with two seeds: its replicates may all be the same",
            ),
            "system_role": (self.system_role, "takes no system message"),
            "reasoning": (self.reasoning_counts, "does not count the tokens of its thoughts"),
            "choices": (True, ""),
            "pictures": (
                self.pictures is True,
                "was not seen to read pictures: ask its server again (wrods check --probe)"
                if self.pictures is None
                else "takes a picture and did not read the word in it",
            ),
        }
        gaps = []
        for need in needs:
            if need not in missing:
                raise unknown_name("need", need, NEEDS)
            is_met, lack = missing[need]
            if not is_met:
                gaps.append(f"{self.model} {lack}.")
        return gaps
