"""The files for a server of one's own name what exists: services, commands, options, variables, paths."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click import Command, Context
from ruamel.yaml import YAML

from experiment.cli import main
from experiment.people.recruitment.codes import OUTCOMES, SETTINGS

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
VARIABLE = re.compile(r"\$\{(\w+)(?::?[-?][^}]*)?\}")


@pytest.fixture
def compose() -> dict[str, Any]:
    told: dict[str, Any] = YAML(typ="safe").load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return told


def env_example() -> dict[str, str]:
    lines = (DEPLOY / ".env.example").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def options_of(command: Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


def words_that_exist(words: list[str]) -> None:
    assert words[0] == "wrods"
    command = main.get_command(Context(main), words[1])
    assert command is not None, words[1]
    used = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
    assert used <= options_of(command), used - options_of(command)


def test_the_services_run_commands_that_exist(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"wrods", "db", "caddy"}
    words_that_exist(shlex.split(compose["services"]["wrods"]["command"]))


def test_the_proxy_passes_requests_to_the_port_that_is_listened_at(compose: dict[str, Any]) -> None:
    words = shlex.split(compose["services"]["wrods"]["command"])
    port = words[words.index("--port") + 1]
    assert f"reverse_proxy wrods:{port}" in (DEPLOY / "Caddyfile").read_text("utf-8")
    assert words[words.index("--host") + 1] == "0.0.0.0"
    assert "ports" not in compose["services"]["wrods"], "nobody gets past the proxy"
    assert "ports" not in compose["services"]["db"]


def test_every_variable_is_in_the_example_and_used() -> None:
    used = set(VARIABLE.findall((DEPLOY / "compose.yaml").read_text("utf-8")))
    assert used == set(env_example())
    empty = {name for name, value in env_example().items() if not value}
    secrets = {"PASSWORD", "SECRET", "DB_PASSWORD"}
    assert empty == secrets | {"REGISTRATION"}, "no secret has a value that somebody could keep"


@pytest.mark.parametrize("said", ["", "--not-registered", "--registered https://osf.io/abcde"])
def test_where_the_plan_is_registered_is_said_without_a_terminal(compose: dict[str, Any], said: str) -> None:
    command = compose["services"]["wrods"]["command"]
    assert "${REGISTRATION}" in command
    words_that_exist(shlex.split(command.replace("${REGISTRATION}", said)))


def test_variables_for_wrods_are_ones_that_it_reads(compose: dict[str, Any]) -> None:
    code = "".join(file.read_text("utf-8") for file in (ROOT / "experiment").rglob("*.py"))
    for name in compose["services"]["wrods"]["environment"]:
        assert f'"{name}"' in code, name


def test_the_image_is_built_of_files_that_exist() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.M):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() for source in sources), line
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(re.findall(r"'\.\[(\w+)\]'", text)) <= set(extras)
    words_that_exist(["wrods", "serve"])


def test_the_example_config_is_one_that_is_accepted() -> None:
    text = (DEPLOY / "config.toml.example").read_text("utf-8")
    given = tomllib.loads(text)["recruitment"]["my-study"]
    assert set(given) <= set(SETTINGS)
    assert set(OUTCOMES) <= set(given)


def test_secrets_are_not_committed() -> None:
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert {"/deploy/.env", "/deploy/config/", "/deploy/studies/"} <= set(ignored)


def test_commands_of_the_page_on_online_studies_exist() -> None:
    page = (ROOT / "docs" / "online.md").read_text("utf-8")
    commands = [
        line
        for block in re.findall(r"```sh\n(.*?)```", page, re.S)
        for line in block.replace("\\\n", " ").splitlines()
    ]
    bare = [line.removeprefix("sudo docker compose exec wrods ") for line in commands]
    ours = [line for line in bare if line.startswith("wrods ")]
    assert len(ours) == 6
    for line in ours:
        words_that_exist(shlex.split(line, comments=True))
