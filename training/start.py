"""Imported first by a script that is started as `python training/NAME.py`: the other modules come
from its checkout, and a missing package is named with the command that installs it."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # was this folder
import training  # noqa: E402, F401
