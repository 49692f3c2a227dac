"""`python -m oxx_env` is `oxx`."""

import sys

from oxx_env.commands._cli import main

if __name__ == "__main__":
    sys.exit(main())
