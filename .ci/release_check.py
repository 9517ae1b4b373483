"""Would this be a good release? Build it, read its metadata, install it in clean environments, and use it there.

Usage: make release-check. It ends at the first thing that is wrong, and uploads nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
SMOKE = """
import importlib.metadata, sys
from pathlib import Path
import wsabi
version, prefix = sys.argv[1:]
assert wsabi.__version__ == importlib.metadata.version("wsabi") == version, wsabi.__version__
assert Path(wsabi.__file__).is_relative_to(prefix), f"{wsabi.__file__} is not the installed package"
assert all(hasattr(wsabi, name) for name in wsabi.__all__)
extra = {"matplotlib", "typer", "rich", "distributed"}
assert not extra & {dist.name for dist in importlib.metadata.distributions()}, "an extra came without being asked for"
model = wsabi.Model(lambda x: -0.5 * x @ x, wsabi.Gaussian([0.0, 0.0]))
result = wsabi.integrate(model, budget=60, rng=0, journal="run.db")
assert abs(result.log_z + 0.6931) < 0.01, result.log_z  # log Z = -log 2
result.save("result.json")
result.to_html("report.html")
assert abs(wsabi.load("result.json").log_z - result.log_z) < 1e-6
assert wsabi.load("run.db").n_evals == result.n_evals
print(f"log Z = {result.log_z:.4f} from {result.n_evals} evaluations; exact -0.6931")
"""
IN_WHEEL = ("wsabi/py.typed", "wsabi/__init__.py", "/licenses/LICENSE", "/entry_points.txt")
IN_SDIST = (
    "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "CITATION.cff", "Makefile",
    "mkdocs.yml", "docs/quickstart.md", "docs/figures/decay-corner.png", "examples/data/iris.csv",
    "examples/programs/pendulum.py", "tests/test_examples.py", ".ci/run", "src/wsabi/py.typed",
)  # fmt: skip


def say(step: str, what: str) -> None:
    """One line of the report."""
    print(f"{step:<22} {what}", flush=True)


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """Standard output of a command; where it fails, all that it wrote, and the end."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    environment |= {"PYTHONIOENCODING": "utf-8", "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nfailed with status {done.returncode}: {' '.join(str(part) for part in command)}")
    return done.stdout


def found(pattern: str, path: str) -> str:
    """What a pattern has in its group, in a file of the repository."""
    match = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else sys.exit(f"{path} has nothing like {pattern}")


def agreed_version() -> str:
    """The version, which the package, the citation and the changelog have to agree on."""
    version = found(r'^__version__ = "(.+)"$', "src/wsabi/__init__.py")
    cited = found(r"^version: (.+)$", "CITATION.cff")
    if cited != version:
        sys.exit(f"the package has version {version}, CITATION.cff {cited}")
    heading = found(rf"^## \[({re.escape(version)}|Unreleased)\]", "CHANGELOG.md")
    dirty = run("git", "status", "--porcelain").strip() if (ROOT / ".git").exists() else ""
    state = "; the work tree has changes that are not committed" if dirty else ""
    note = "; the changelog still calls it Unreleased" if heading == "Unreleased" else ""
    say("version", version + note + state)
    return version


def built(version: str) -> tuple[Path, Path]:
    """A fresh sdist and the wheel made of it, with what has to be in them."""
    for old in DIST.glob("wsabi-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    sdist, wheel = DIST / f"wsabi-{version}.tar.gz", DIST / f"wsabi-{version}-py3-none-any.whl"
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()
    missing = [name for name in IN_SDIST if name not in names]
    missing += [name for name in IN_WHEEL if not any(one.endswith(name) for one in inside)]
    if missing:
        sys.exit(f"missing in sdist or wheel: {', '.join(missing)}")
    strange = [name for name in inside if not name.startswith(("wsabi/", f"wsabi-{version}.dist-info/"))]
    if strange:
        sys.exit(f"the wheel holds what is not the package: {', '.join(strange[:5])}")
    say("sdist", f"{sdist.name}, {len(names)} files, {sdist.stat().st_size / 1e6:.1f} MB")
    say("wheel", f"{wheel.name}, {len(inside)} files, {wheel.stat().st_size / 1e6:.1f} MB")
    return sdist, wheel


def check_metadata(*artifacts: Path) -> None:
    """Twine reads the metadata as an index does."""
    for line in run(sys.executable, "-m", "twine", "check", "--strict", *artifacts).splitlines():
        say("twine check", re.sub(r"\x1b\[\d*m", "", line).replace(str(DIST), "dist"))


def try_out(artifact: Path, version: str) -> None:
    """Install an artifact in a clean environment, without and then with the extra ``cli``, and use it."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        run(sys.executable, "-m", "venv", home / "env")
        python = home / "env" / "bin" / "python"
        install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        begun = time.monotonic()
        run(*install, artifact, folder=home)
        run(python, "-m", "pip", "check", folder=home)
        say("wheel" if artifact.suffix == ".whl" else "sdist", f"installed in {time.monotonic() - begun:.0f} s")
        say("  smoke test", run(python, "-c", SMOKE, version, home / "env", folder=home).strip())
        run(*install, f"{artifact}[cli]", folder=home)
        command = home / "env" / "bin" / "wsabi"
        say("  wsabi --version", run(command, "--version", folder=home).strip())
        demo = run(command, "demo", "--budget", "120", folder=home)
        for line in demo.splitlines():
            if re.search(r"estimate|known value|difference", line):
                say("  wsabi demo", " ".join(line.replace("│", " ").split()))
        difference = re.search(r"difference[ │]+([+-]?\d+\.\d+)", demo)
        if difference is None or abs(float(difference[1])) > 0.2:
            sys.exit(f"the demonstration is off:\n{demo}")


def main() -> None:
    """All steps, in order."""
    version = agreed_version()
    artifacts = built(version)
    check_metadata(*artifacts)
    for artifact in artifacts:
        try_out(artifact, version)
    say("release check", "passed; nothing was uploaded")


if __name__ == "__main__":
    main()
