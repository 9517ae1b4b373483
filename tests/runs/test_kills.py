"""A run is killed −9 again and again, and ends bit for bit where the unbroken run does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import killing

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")


def killed(journal: Path, case: str, kills: int, seed: int) -> dict[str, object]:
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    environment = os.environ | threads | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "benchmarks.killing", str(journal), case, str(kills), str(seed)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("case", "kills"),
    [("adaptive", 2), ("snapshots", 3), ("tolerance", 2), ("plain", 3), ("batch", 2), ("gradient", 3)],
)
def test_a_killed_run_ends_where_the_unbroken_one_does(tmp_path: Path, case: str, kills: int) -> None:
    found = killed(tmp_path / "run.db", case, kills, seed=1)
    unbroken = killing.run(None, case)
    assert found["points"] == unbroken.points.tobytes().hex()
    assert (found["log_z"], found["log_z_std"]) == (unbroken.log_z, unbroken.log_z_std)
    assert found["reason"] == unbroken.reason
    assert found["repeated"] == 0  # nothing that was in the file was evaluated again
    assert int(str(found["evaluations"])) <= unbroken.n_evals + kills  # at most the one under way at each kill
