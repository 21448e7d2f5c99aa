"""`python -m monolib` is the command `monolib`."""

import sys

from monolib.command_line import main

sys.exit(main())
