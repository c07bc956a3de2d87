"""All sessions that a study asks of one model: lists × prompt variants × replicates, or people × variants × replicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from experiment.lists import list_ids
from experiment.models.planning.consent import require_consent
from experiment.models.planning.manner import is_remote, manner_of
from experiment.models.planning.script import Script
from experiment.models.planning.session import ModelSession, Person
from experiment.models.settings import ModelSettings
from experiment.procedure import Plan, plan_session
from experiment.scoring.published import parser_of
from experiment.study import Study
from stimuli.errors import UserError


def plan_sessions(
    study: Study,
    reader: str,
    settings: ModelSettings,
    identity: Mapping[str, object],
    *,
    version: int = 1,
    people: Iterable[Person] | None = None,
) -> Iterator[ModelSession]:
    """Iterate over the sessions that a study asks of one model; a wider study holds the narrower one's.

    Everything is a function of study and model alone, so the same command plans the same work on every machine. Each
    list is unfolded once and worded once a variant; replicates share it.

    Parameters
    ----------
    reader : str
        The model's name in the study.
    settings : ModelSettings
    identity : mapping
        All that may change its answers (model, revision, template …), as its engine describes itself.
    version : int
        The study's version in the store.
    people : iterable of Person, optional
        Finished human sessions, which can be gone over several times
        (:class:`experiment.models.planning.stored.People`); only yoked and teacher-forced sessions need them.

    Raises
    ------
    UserError
        Settings do not go together; there are no sessions of people to follow; or their answers may not be sent.
    """
    manner = manner_of(study, settings)
    identity = dict(identity)
    scorer = parser_of(study)
    follows_people = needs_people(study)
    lists = list_ids(study, study.items, label_maps=study.get("models", "label_maps", default="balanced"))
    plans: dict[int, Plan] = {}
    scripts: dict[tuple[int, int], Script] = {}

    def of_list(list_id: int, variant: int) -> Script:
        if (list_id, variant) not in scripts:
            if list_id not in plans:
                plans[list_id] = plan_session(study, study.items, list_id=list_id, version=version)
            scripts[list_id, variant] = Script({**plans[list_id], "prompt_variant": variant}, manner)
        return scripts[list_id, variant]

    def session(script: Script, replicate: int, person: Person | None) -> ModelSession:
        plan = script.plan
        place = [
            plan["list_id"],
            plan["prompt_variant"],
            replicate,
            None if person is None else person.session_id,
        ]
        name = [study.id, version, study.design_hash, reader, identity, place, manner.to_json()]
        return ModelSession(
            script, name, seed=study.seed, reader=reader, replicate=replicate, scorer=scorer, person=person
        )

    for replicate in range(1, int(study.get("models", "replicates", default=1)) + 1):
        for variant in range(1, int(study.get("models", "prompt_variants", default=1)) + 1):
            if not follows_people:
                for list_id in lists:
                    yield session(of_list(list_id, variant), replicate, None)
                continue
            found = 0
            for person in people or ():
                found += 1
                if manner.context == "teacher_forced" and is_remote(settings):
                    require_consent(study, settings, person)
                plan = {**person.plan, "prompt_variant": variant, "context": manner.context}
                yield session(Script(plan, manner), replicate, person)
            if not found:
                raise UserError(
                    f"{study.place('models', 'yoke' if study.get('models', 'yoke') else 'context')}: models take the "
                    "sessions of people here, and no person has finished one yet",
                    mend="Collect sessions first (wrods serve), or let models take lists of their own.",
                    exit_code=1,
                )


def needs_people(study: Study) -> bool:
    """Say whether models of a study take people's sessions: their lists and orders, or their answers too."""
    yoke = study.get("models", "yoke", default="lists")
    return bool(study.get("models", "context") == "teacher_forced" or yoke == "human")
