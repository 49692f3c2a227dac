"""What shows that the environment is right, stays right, and fails clearly: one command each.

    python -m tests.stress.verify     random games, kernel against reference
    python -m tests.stress.counts     sequences of placements from small positions, both ways
    python -m tests.stress.mutants    rules changed on purpose: do the tests notice?
    python -m tests.stress.fuzz       damaged files, wrong options, any actions
    python -m tests.stress.kill       kill -9 in training and arena; full disk; read-only folder
    python -m tests.stress.endure     millions of decisions: does memory grow?
    python -m tests.stress.size       lines and words at some commits

`docs/reliability.md` holds what they print. They are made of the helpers of `tests/`.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "tests") not in sys.path:
    sys.path.append(str(ROOT / "tests"))
