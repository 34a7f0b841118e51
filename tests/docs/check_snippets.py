#!/usr/bin/env python3
# tests/docs/check_snippets.py: every C++ snippet of the documents for users stands in an example that is compiled, run and compared.
"""Usage: check_snippets.py SOURCE_FOLDER. Reads README.md, tandem/comm/README.md and the documents below docs/;
each ```cpp block must be a run of lines of one file below examples/, comments included.
All lines of a block may be indented less than in the file, by the same number of spaces.
Exits 1 and names each block that is not."""
import re
import sys
from pathlib import Path


def snippets(document):
    text = document.read_text(encoding="utf-8")
    for match in re.finditer(r"^```cpp\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


def stands_in(snippet, source):
    """Whether the lines of `snippet` follow each other in `source`, all indented by some number of spaces more."""
    for indent in range(0, 9, 2):
        lines = [" " * indent + line if line.strip() else line for line in snippet.splitlines(keepends=True)]
        if "\n" + "".join(lines) in "\n" + source:
            return True
    return False


def main():
    root = Path(sys.argv[1])
    sources = [path.read_text(encoding="utf-8") for path in sorted(root.glob("examples/**/*.cpp"))]
    wrong = 0
    count = 0
    for document in [root / "README.md", root / "tandem/comm/README.md", *sorted(root.glob("docs/**/*.md"))]:
        for line, snippet in snippets(document):
            count += 1
            if not any(stands_in(snippet, source) for source in sources):
                wrong += 1
                print(f"{document.relative_to(root)}:{line}: this snippet stands in no example; make it part of one, so that it is run")
    if count == 0:
        wrong = 1
        print("no snippet was found: the documents or this test are broken")
    print(f"{count} snippets, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
