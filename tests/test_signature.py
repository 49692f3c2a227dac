"""Results stay what they were: one hash over seeded games, kept for each version of the
environment (`oxx bench --signature`)."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import oxx_env
from oxx_env.commands import _cli
from oxx_env.commands._signature import VERSION, _Digest, _parallel, choose

KEPT: dict[str, str] = json.loads(
    (Path(__file__).parent / "golden" / "signature.json").read_text(encoding="utf-8")
)


def test_a_change_of_results_needs_a_new_version_of_the_environment(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _cli.main(["bench", "--signature", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["version"] == VERSION and told["games"] >= 40 and told["observations"] > 20_000
    assert told["sha256"] == KEPT.get(VERSION), (
        f"games or observations are no longer those of {VERSION}. If that is meant, results of the "
        "old and the new cannot be compared: give the environment the next version (the ids in "
        "oxx_env/__init__.py and the module's name) and add its hash to "
        "tests/golden/signature.json; the old lines stay"
    )


def test_ids_modules_and_kept_hashes_are_of_the_same_version() -> None:
    numbers = [int(version.removeprefix("baron-oxx-v")) for version in KEPT]
    assert numbers == list(range(len(KEPT))), "one line a version, none left out"
    last = numbers[-1]
    assert f"baron-oxx-v{last}" == VERSION
    assert f"oxx_env/BaronOxx-v{last}" == oxx_env.GYMNASIUM_ID
    assert importlib.import_module(f"oxx_env.baron_oxx_v{last}").parallel_env
    assert len(set(KEPT.values())) == len(KEPT)
    assert all(len(value) == 64 for value in KEPT.values())


def test_the_hash_takes_in_deal_rules_and_rewards() -> None:
    hashes = set()
    for rules, deck, reward, seed in [
        ("base", "balanced", "points", 1),
        ("base", "balanced", "points", 2),
        ("color", "balanced", "points", 1),
        ("base", "two-color", "points", 1),
        ("base", "balanced", "relative", 1),
    ]:
        digest = _Digest()
        _parallel(digest, 2, rules, deck, 1, reward, seed)
        hashes.add(digest.hash.hexdigest())
    assert len(hashes) == 5


def test_choices_are_legal_and_of_all_kinds() -> None:
    mask = np.array([0, 1, 1, 0, 0, 1, 0, 0, 1, 0])
    assert {choose(mask, step) for step in range(50)} == {1, 2, 5, 8}
