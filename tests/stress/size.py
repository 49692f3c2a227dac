"""How large is the project? Lines of code and of tests, words of documentation, at some commits.

    python -m tests.stress.size 3b8c240 HEAD

`code` is the package with its pages, `training/` and `benchmarks/`; `stress` was the folder
`reliability/` before; `docs` are the pages and the README.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile

from tests.stress import ROOT

PARTS = {  # name → (starts of paths, endings); the first that fits counts
    "stress": (("tests/stress/", "reliability/"), (".py",)),
    "tests": (("tests/",), (".py",)),
    "code": (("oxx_env/", "training/", "benchmarks/"), (".py", ".js", ".css", ".html")),
    "docs": (("docs/", "README.md"), (".md",)),
}


def sizes(commit: str) -> dict[str, int]:
    """Lines (of `docs`: words) by part. Raises CalledProcessError for an unknown commit."""
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, capture_output=True, check=True
    ).stdout
    found = dict.fromkeys(PARTS, 0)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            for part, (starts, ends) in PARTS.items():
                if member.isfile() and member.name.startswith(starts):
                    if member.name.endswith(ends):
                        file = files.extractfile(member)
                        assert file is not None
                        text = file.read()
                        found[part] += len(text.split() if part == "docs" else text.splitlines())
                    break
    return found


def main(commits: list[str]) -> int:
    print("| commit | code, lines | tests, lines | stress tests, lines | docs, words |")
    print("|---|---|---|---|---|")
    for commit in commits or ["HEAD"]:
        try:
            found = sizes(commit)
        except subprocess.CalledProcessError as error:
            print(f"size: {error.stderr.decode().strip()}", file=sys.stderr)
            return 2
        columns = (f"{found[part]:,}" for part in ("code", "tests", "stress", "docs"))
        print(f"| {commit} | {' | '.join(columns)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
