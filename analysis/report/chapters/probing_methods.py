"""How hidden states were probed, for the Method section."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata

from markupsafe import Markup, escape

from analysis import apa
from analysis.inside.probing import Probing
from analysis.inside.probing_fit import CONDITION, INNER_FOLDS, TARGETS, Settings, settings_of
from analysis.inside.probing_intervals import RESAMPLES, widening
from analysis.report.chapters.probing_tables import CHANCE_OF_A_CONDITION
from analysis.report.references import cite
from analysis.tables import Tables

SOURCES = ("cao2023", "tenney2019", "hewitt2019", "pedregosa2011")
SOURCES_OF_FOLDS = ("nadeau2003", "bengio2004")


def methods_of_probing(tables: Tables, probings: Sequence[Probing]) -> tuple[Markup, ...]:
    """Write the paragraphs of the Method section; none without a probing."""
    settings = settings_of(tables.dictionary.get("probing"))
    if settings is None or not probings:
        return ()
    told = [
        _probes(settings, probings),
        *([_controls(settings, probings)] if settings.controls else []),
        _intervals(probings),
    ]
    return tuple(Markup(escape(one)) for one in told)


def _probes(settings: Settings, probings: Sequence[Probing]) -> str:
    what = apa.listing([TARGETS[target] for target in dict.fromkeys(one.target for one in probings)])
    shared = f"have the same {apa.listing(settings.keep_together)}, " if settings.keep_together else ""
    values = [f"{one:.10f}".rstrip("0").rstrip(".") for one in settings.penalties]
    chosen = (
        f"The inverse strength of the penalty, C, was chosen from {apa.listing(values)} by the log loss in {INNER_FOLDS}-fold "
        "cross-validation within the training trials, items kept together again; the search went from strong to weak "
        "penalties and "
        "ended after two that were worse."
        if len(values) > 1
        else f"The inverse strength of the penalty, C, was {values[0]}."
    )
    return (
        f"Hidden states were probed after {_by('cao2023')} and {_by('tenney2019')}. For each model and layer, a "
        f"multinomial logistic "
        f"regression with a ridge penalty (scikit-learn {metadata.version('scikit-learn')}; {cite('pedregosa2011')}) "
        f"predicted {what} "
        "from the state of the prompt’s last token. One probe was trained on trials of all conditions together and tested on "
        f"held-out items, each condition by itself. {_tested(probings)} Items that {shared}show the same text, come from "
        f"the same "
        "record of a data set, or form a matched pair were kept on one side with all their trials. States were "
        "standardised by the "
        f"means and standard deviations of the training trials. {chosen}"
    )


def _tested(probings: Sequence[Probing]) -> str:
    dealt = probings[0].dealt
    if dealt.test_splits:
        plural = "s" if len(dealt.test_splits) > 1 else ""
        return (
            f"Items of the data set’s {apa.listing(dealt.test_splits)} split{plural} tested and all others trained; items "
            f"of one split that "
            "belong together with items of another were left out."
        )
    return (
        f"Items were dealt to {apa.NUMBERS[len(dealt.splits)] if len(dealt.splits) < 10 else len(dealt.splits)} folds "
        f"with nearly "
        "equal shares of each label; each fold was tested once by a probe trained on the others."
    )


def _controls(settings: Settings, probings: Sequence[Probing]) -> str:
    predicts = _predicts_conditions(probings)
    return (
        f"Control tasks ({cite('hewitt2019')}) gave each item a random label, constant over its conditions, with the "
        f"labels of each "
        f"fold shuffled among its items ({apa.worded(settings.controls, 'shuffle')}, the penalty of the probe itself)"
        f"{', and where the condition was predicted, the conditions of each item shuffled among its trials' if predicts else ''}; "
        "selectivity "
        "is the accuracy of the probe minus that of the control task. Since tested items were not trained on, a control task "
        "cannot be solved from memory: on held-out items it shows that nothing leaks from training to test and what the "
        "frequencies of labels alone give; on training items it shows how much a probe of this size can memorise."
    )


def _intervals(probings: Sequence[Probing]) -> str:
    widest = max(widening(len(one.dealt.splits)) for one in probings)
    about = (
        "they are about these probes and other items."
        if widest == 1
        else f"probes of different folds share training items, so that their accuracies vary together, which a bootstrap over items "
        f"does not see: intervals are {widest:.2f} times as wide as it makes them, after {_by('nadeau2003')}; no unbiased estimate of "
        f"that variance exists ({cite('bengio2004')})."
    )
    of_one = (
        f"; in one condition, where the condition was predicted, it is {CHANCE_OF_A_CONDITION}"
        if _predicts_conditions(probings)
        else ""
    )
    return (
        f"Intervals are percentile bootstraps over items with all their trials ({RESAMPLES:,} resamples, the same for all layers and "
        f"conditions, so that differences are paired); {about} Simultaneous intervals hold for all layers and conditions of a model "
        "together (the largest standardised deviation of a resample, max-t). Chance is the accuracy of the label most frequent in "
        f"training, or 1 divided by the number of labels, whichever is larger{of_one}. Folds, shuffles, and resamples "
        "are seeded by the study’s name."
    )


def _predicts_conditions(probings: Sequence[Probing]) -> bool:
    return any(one.target == CONDITION for one in probings)


def _by(key: str) -> str:
    """Write a reference as part of a sentence: ``Cao et al. (2023)``."""
    who, _, year = cite(key).rpartition(", ")
    return f"{who} ({year})"
