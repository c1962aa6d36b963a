"""The tests see the checkout's root last, behind an installed package."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
