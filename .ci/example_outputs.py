"""Run the examples that have a page, and write what they print into it: `make outputs`.

The output of a page is the ```text block that follows "It prints".
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = re.compile(r'title="(examples/\w+\.py)"')
OUTPUT = re.compile(r"(?<=^It prints\n\n```text\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)


def printed(script: Path) -> str:
    """What an example prints, as in a terminal of 100 columns."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(script)],
            cwd=folder,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
    return done.stdout


def main() -> None:
    """Every page of docs/examples that shows a script."""
    for page in sorted((ROOT / "docs" / "examples").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        script = SCRIPT.search(text)
        if script is None:
            continue
        output = printed(ROOT / script[1])
        page.write_text(OUTPUT.sub(lambda _, output=output: output, text, count=1), encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: {len(output.splitlines())} lines of {script[1]}")


if __name__ == "__main__":
    main()
