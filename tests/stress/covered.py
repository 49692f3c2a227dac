"""How much of the rules do the tests by clause run? Kernels as plain Python, lines and branches.

    python -m tests.stress.covered

Runs `tests/test_rules.py` with NUMBA_DISABLE_JIT=1 under coverage and prints what of
`oxx_env/rules.py` was run. Exit code 0: at least 95 %. 1: less, or a test failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.stress import ROOT
from tests.stress.mutants import DEALS

LEAST = 95.0


@dataclass(frozen=True)
class Covered:
    """Percentages of `rules.py`, and what is left."""

    lines: float
    both: float  # lines and branches together
    missing: list[int]


def measure() -> Covered:
    """Run the tests by clause. Raises RuntimeError if one fails."""
    with tempfile.TemporaryDirectory(prefix="oxx-covered-") as name:
        data, report = Path(name) / "data", Path(name) / "report.json"
        environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "COVERAGE_FILE": str(data)}
        environment["PYTHONPATH"] = str(ROOT)
        only = f"--include={ROOT}/oxx_env/game/rules.py"
        tests = (
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore"),
            *("tests/test_rules.py", "--deselect", f"tests/test_rules.py::{DEALS}"),
        )
        for arguments in (
            ("run", "--branch", f"--rcfile={os.devnull}", only, *tests),
            ("json", "-q", f"--rcfile={os.devnull}", "-o", str(report)),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "coverage", *arguments],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
        (told,) = json.loads(report.read_text())["files"].values()
    summary = told["summary"]
    lines = 100 * summary["covered_lines"] / summary["num_statements"]
    return Covered(lines, summary["percent_covered"], told["missing_lines"])


def main() -> int:
    found = measure()
    print(f"rules.py: {found.lines:.1f} % of the lines, {found.both:.1f} % with branches")
    print("lines never run:", ", ".join(map(str, found.missing)) or "none")
    return 0 if found.both >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
