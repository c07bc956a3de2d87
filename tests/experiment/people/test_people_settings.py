from __future__ import annotations

import sys
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from experiment.configuration import config_file, read_config, store_address
from experiment.people.dashboard.accounts import is_password
from experiment.people.service import read_settings
from stimuli.errors import UserError


def write_config(text: str, mode: int = 0o600) -> Path:
    file = config_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def test_without_a_password_one_is_made():
    settings, made = read_settings(read_config())
    assert made is not None and len(made) >= 16
    assert is_password(made, settings.password_hash) and not is_password("", settings.password_hash)
    assert made not in repr(settings)


def test_the_password_comes_from_the_environment_before_the_file(monkeypatch):
    write_config('[serve]\npassword = "from the file"\n')
    settings, made = read_settings(read_config())
    assert made is None and is_password("from the file", settings.password_hash)
    monkeypatch.setenv("WRODS_PASSWORD", "from the environment")
    settings, made = read_settings(read_config())
    assert is_password("from the environment", settings.password_hash) and not is_password(
        "from the file", settings.password_hash
    )


@pytest.mark.parametrize("place", ["environment", "file"])
def test_a_password_that_is_soon_guessed_is_refused(monkeypatch, place):
    if place == "file":
        write_config('[serve]\npassword = "lab"\n')
    else:
        monkeypatch.setenv("WRODS_PASSWORD", "lab")
    with pytest.raises(UserError, match="too short") as refused:
        read_settings(read_config())
    assert "10 characters" in str(refused.value) and "lab'" not in str(refused.value)


def test_a_password_may_be_given_as_a_hash():
    known = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("word")
    write_config(
        f'store = "postgresql://me@here/data"\n[serve]\npassword_hash = "{known}"\nsecret = "{"k" * 20}"\n'
    )
    config = read_config()
    settings, made = read_settings(config)
    assert made is None and is_password("word", settings.password_hash) and settings.secret == b"k" * 20
    assert store_address(config) == "postgresql://me@here/data"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_configuration_that_others_can_read_is_refused():
    file = write_config("", mode=0o644)
    with pytest.raises(UserError, match="chmod 600") as refused:
        read_config()
    assert str(file) in str(refused.value)


def test_a_short_signing_key_is_refused(monkeypatch):
    monkeypatch.setenv("WRODS_SECRET", "short")
    with pytest.raises(UserError, match="16 characters"):
        read_settings({})
