"""The adaptive engine as it is called, with no budget: `python -m benchmarks.study_engine --as-called --seeds 4`.

python -m benchmarks.study_as_called [options of study_engine]
"""

from __future__ import annotations

import sys

from benchmarks import study_engine

if __name__ == "__main__":
    study_engine.main(["--as-called", "--seeds", "4", *sys.argv[1:]])
