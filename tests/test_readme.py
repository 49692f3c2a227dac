"""The README's examples run, and what it points at is there."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from oxx_env.game.observe import OBS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_examples_in_the_readme_run() -> None:
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted >= 8 and result.failed == 0


def test_what_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert "docs/images/table.png" in links
    missing = [link for link in links if not (ROOT / link).exists()]
    assert not missing


def test_the_readme_tells_the_observations_size() -> None:
    assert f"float32 [{OBS}]" in README
