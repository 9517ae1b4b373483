"""Each peer's own virtual environment, ``.venv/peers/FILE``; ours and Monte Carlo run where this module runs."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.peers.registry import files
from benchmarks.peers.task import Peer

__all__ = ["child_environment", "interpreter", "make_all"]

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("WSABI_PEERS", ROOT / ".venv" / "peers"))


def interpreter(file: str, peer: Peer) -> Path:
    """The Python that runs this peer."""
    return FOLDER / file / "bin" / "python" if peer.requirements else Path(sys.executable)


def make_all(names: list[str] | None = None) -> dict[str, str]:
    """Make the environments that are missing or not as asked for; the last lines of pip for each that failed."""
    failed = {}
    for file, module in files().items():
        peer: Peer = module.PEER
        if not peer.requirements or (names and file not in names):
            continue
        stamp = FOLDER / file / "requirements.txt"
        wanted = "\n".join(peer.requirements) + "\n"
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            continue
        print(f"{file}: {', '.join(peer.requirements)}", flush=True)
        venv.create(FOLDER / file, with_pip=True)
        command = [str(interpreter(file, peer)), "-m", "pip", "install", "--quiet", *peer.requirements, "scipy>=1.15"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            failed[file] = "\n".join(done.stderr.strip().splitlines()[-5:])
            print(f"{file}: pip failed\n{failed[file]}", file=sys.stderr, flush=True)
        else:
            stamp.write_text(wanted, encoding="utf-8")
    return failed


def child_environment() -> dict[str, str]:
    """Environment variables of a run: one thread for every library that has a pool of its own, and our sources."""
    threads = ("OPENBLAS", "OMP", "MKL", "NUMEXPR", "BLIS", "VECLIB_MAXIMUM")
    single = {f"{name}_NUM_THREADS": "1" for name in threads}
    jax = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu"}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return os.environ | single | jax | {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg"}
