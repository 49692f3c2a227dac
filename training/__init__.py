"""Learning to play; needs the extra `train`.

Scripts are started as `python training/NAME.py` or `python -m training.NAME`.
"""

import sys
from pathlib import Path

from oxx_env.lib.extras import MissingExtra, require

try:
    require("train", "training")
except MissingExtra as error:
    main = Path(getattr(sys.modules["__main__"], "__file__", None) or "nowhere")
    if sys.argv[0] == "-m":  # Python looks for the script of `python -m training.NAME`
        main = Path(__file__).with_name("training")
    if main.resolve().parent != Path(__file__).resolve().parent:
        raise
    print(f"{main.name}: {error}", file=sys.stderr)
    sys.exit(2)
