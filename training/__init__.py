"""Learning to play; needs the extra `train`.

A script imports this before all else, so that a missing package is a message that says what to do.
"""

import sys
from pathlib import Path

from oxx_env.lib.extras import MissingExtra, require

try:
    require("train", "training")
except MissingExtra as error:
    main = Path(getattr(sys.modules["__main__"], "__file__", None) or "nowhere")
    if main.resolve().parent != Path(__file__).resolve().parent:
        raise
    print(f"{main.name}: {error}", file=sys.stderr)
    sys.exit(2)
