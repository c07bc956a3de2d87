"""From materials to items: pure functions that a study's build calls, one module a kind of material."""

from stimuli.recipes.asking import Skipped, TaskItems
from stimuli.recipes.geometry import geometry_items, geometry_released_items
from stimuli.recipes.htest import htest_released_items, htest_rule_items
from stimuli.recipes.lexical_decision import lexical_decision_items, word_records
from stimuli.recipes.published_lists import PublishedList, published_list
from stimuli.recipes.recovery import recovery_items
from stimuli.recipes.sampling import draw_some
from stimuli.recipes.sentences import sentence_items
from stimuli.recipes.summary import ConditionSummary, describe_conditions
from stimuli.recipes.tasks import task_items
from stimuli.recipes.words import choose_foils, word_items

__all__ = [
    "ConditionSummary",
    "PublishedList",
    "Skipped",
    "TaskItems",
    "choose_foils",
    "describe_conditions",
    "draw_some",
    "geometry_items",
    "geometry_released_items",
    "htest_released_items",
    "htest_rule_items",
    "lexical_decision_items",
    "published_list",
    "recovery_items",
    "sentence_items",
    "task_items",
    "word_items",
    "word_records",
]
