#!/usr/bin/env python3
# tests/docs/check_snippets.py: every C++ snippet of the documents for users stands in an example that is compiled, run and compared.
"""Usage: check_snippets.py SOURCE_FOLDER. Reads README.md, docs/*.md and tandem/comm/README.md; each ```cpp block must be a run of lines of one file in
examples/, indentation and comments included. Exits 1 and names each block that is not."""
import re
import sys
from pathlib import Path


def snippets(document):
    text = document.read_text(encoding="utf-8")
    for match in re.finditer(r"^```cpp\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


def main():
    root = Path(sys.argv[1])
    sources = {path.name: path.read_text(encoding="utf-8") for path in sorted(root.glob("examples/*.cpp"))}
    wrong = 0
    count = 0
    for document in [root / "README.md", *sorted(root.glob("docs/**/*.md")), root / "tandem/comm/README.md"]:
        for line, snippet in snippets(document):
            count += 1
            if not any(snippet in source for source in sources.values()):
                wrong += 1
                print(f"{document.relative_to(root)}:{line}: this snippet stands in no example; make it part of one, so that it is run")
    if count == 0:
        wrong = 1
        print("no snippet was found: the documents or this test are broken")
    print(f"{count} snippets, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
