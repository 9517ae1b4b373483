"""Run the code of pages that show its output, and write what it prints into them: `make outputs`.

On a page of an example the output is the ```text block that follows "It prints". On README.md and the quickstart a
```text block is what the ```python block before it prints.
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


BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARK = "\x1e"  # printed before each block


def printed(script: Path) -> str:
    """What a script prints, as in a terminal of 100 columns."""
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


def write_outputs(page: Path) -> None:
    """The ```text blocks of a page whose code is on it; code after the last of them is not run."""
    text = page.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    last = max(i for i, block in enumerate(blocks) if block[1] == "text")
    code = [block[2] for block in blocks[:last] if block[1] == "python"]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "page.py"
        script.write_text("\n".join(f"print({MARK!r}, end='')\n{part}" for part in code), encoding="utf-8")
        outputs = printed(script).split(MARK)[1:]
    for i in reversed(range(last + 1)):
        if blocks[i][1] == "text":
            before = sum(block[1] == "python" for block in blocks[:i])
            text = text[: blocks[i].start(2)] + outputs[before - 1] + text[blocks[i].end(2) :]
    page.write_text(text, encoding="utf-8")
    print(f"{page.relative_to(ROOT)}: outputs of its own code")


def main() -> None:
    """README.md, the quickstart, and every page of docs/examples that shows a script."""
    for page in (ROOT / "README.md", ROOT / "docs" / "quickstart.md"):
        write_outputs(page)
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
