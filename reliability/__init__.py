"""What shows that the environment is right, stays right, and fails clearly: one command each.

    python -m reliability.verify     random games, kernel against reference
    python -m reliability.counts     sequences of placements from small positions, both ways
    python -m reliability.mutants    rules changed on purpose: do the tests notice?
    python -m reliability.coverage   which lines of the rules the tests run
    python -m reliability.fuzz       damaged files, wrong options, any actions
    python -m reliability.kill       kill -9 in training and arena; full disk; read-only folder
    python -m reliability.endure     millions of decisions: does memory grow?

`docs/reliability.md` holds what they print. They are made of the helpers of `tests/`.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT / "tests") not in sys.path:
    sys.path.append(str(ROOT / "tests"))
