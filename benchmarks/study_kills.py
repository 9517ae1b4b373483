"""Kill −9 at random instants, many times: does the run that goes on end bit for bit where the unbroken one does?

python -m benchmarks.study_kills [KILLS]        # in all, spread over the cases; 100 unless given
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks import killing

KILLS_PER_RUN = 5


def main(kills: int) -> int:
    print("case       kills  evaluations  made twice  of these known to the file  same points and log Z")
    wrong = 0
    per_case = max(1, round(kills / KILLS_PER_RUN / len(killing.CASES)))
    for case in killing.CASES:
        unbroken = killing.run(None, case)
        n_kills = evaluations = twice = known = 0
        same = True
        for seed in range(per_case):
            with tempfile.TemporaryDirectory() as folder:
                found = killing.killed_run(Path(folder) / "run.db", case, KILLS_PER_RUN, seed)
            n_kills += found["kills"]
            evaluations += found["evaluations"]
            twice += found["evaluations"] - unbroken.n_evals
            known += found["repeated"]
            same &= found["points"] == unbroken.points.tobytes().hex() and found["log_z"] == unbroken.log_z
        print(f"{case:10} {n_kills:5} {evaluations:12} {twice:11} {known:27}  {'yes' if same else 'NO'}")
        wrong += not same or known > 0
    return wrong


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
