#!/usr/bin/env python3
# tests/tidy/tidy.py: lengths, widths and words of the sources keep to limits, whose exceptions only become fewer.
"""Reads the tracked files of the project and reports what exceeds a limit: where, what, and the remedy.

exceptions.txt, beside this file, lists what exceeds a limit for now: place, present number, reason. A value above its number is an
error. So is an exception that nothing needs any longer. --lower writes the present numbers where they are lower, and removes what
nothing needs.
"""
import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True  # the source tree may be read-only, and stays as it is
sys.path.insert(0, str(Path(__file__).resolve().parent))
from cpp_shape import Shape  # noqa: E402

CPP_COLUMNS, SCRIPT_COLUMNS = 120, 150
FUNCTION_LINES, FILE_LINES, PUBLIC_NAMES, HELP_CHARACTERS = 60, 600, 30, 160

SCRIPTS = (".js", ".py", ".sh", ".cmake", "CMakeLists.txt")
# The headers that users include: nothing in the repository needs to include them.
UMBRELLA = re.compile(r"tandem/\w+\.hpp")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
OPTION = re.compile(r'registry\.add\(\s*\{\s*\.name\s*=\s*"([^"]*)"')
HELP = re.compile(r'\.help\s*=\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')

# STYLE.md, section Words. Each: its name in exceptions.txt, where it is forbidden, and the remedy.
WORDS = [
    ("card", r"(?<!network )(?<!network's )\bcards?\b", "write device for a GPU, address for how a peer is reached, network card in full"),
    ("kin", r"\bkin\b", "name the family: the dm family"),
    ("whom", r"(?<!to )(?<!from )(?<!with )\bwhom\b", "begin with the subject, and name it"),
    ("whoever", r"\bwhoever\b", "name the thread, the rank or the object"),
    ("in vain", r"\bin vain\b", "say what the call returned: without a task, without a result"),
    ("given back", r"\bgiven back\b", "name who returns what to which pool"),
    ("looks after", r"\blooks? after\b", "write polls, or what else it does"),
    ("leaves the bed", r"\bleaves? the bed\b", "use the field's term, no metaphor"),
    ("not needed any more", r"\bnot needed any ?more\b", "write unused, and who returns it"),
    ("so many times", r"\bfor so many times as\b", "write factor on"),
    ("so it is", r"(?:^|[.:;] )So it is\b", "say what is so"),
    ("begins with who", r"(?:^|\. )(?:Who|Whose|Whom) (?![^.?]*\?)", "begin with the subject, and name it"),
    ("begins with that are", r"(?:^|\. )That (?:are|is|was|were) (?:counted|now|so|not)\b", "begin with the noun that is meant"),
    ("begins with the same", r"^(?:The s|S)ame(?:[,.:;]| (?:as|but|by|for|from|if|in|of|on|to|under|until|when|where|with|without)\b)",
     "say what it is: a comment is understood without the one above it"),
]
CODE = re.compile(r"`[^`]+`")  # names of the code, which are no words
# Each match of WORDS contains one of these in lower case: most comments contain none, and are passed over quickly.
PARTS = ("card", "kin", "who", "in vain", "given back", "look", "the bed", "not needed", "so many times", "so it is", "that ", "same")
WORDS = [(name, re.compile(pattern, 0 if "^" in pattern else re.IGNORECASE), remedy) for name, pattern, remedy in WORDS]

REMEDIES = {
    "columns": "wrap the line",
    "function": "move a step of it into a function of its own",
    "file": "move the second idea that lives there into a file of its own",
    "class": "split the class, or make functions that use its public interface free",
    "header": "remove it, or include it where its declarations are used",
    "help": "shorten it, and move the rest into the documentation",
}


@dataclass(frozen=True)
class Place:
    """What an exception names: the kind of limit, the path, and within it the name of a function, class, word or option."""
    kind: str
    path: str
    name: str = ""

    def __str__(self):
        return f"{self.path} {self.name}".strip()


@dataclass
class Finding:
    """A value beyond its limit, and the line where it shows. Findings of one place add up if `adds` says so."""
    place: Place
    line: int
    value: int
    what: str
    remedy: str
    adds: bool = False


def tracked_files(root):
    """The paths of the project's files. Without git, or where it tracks none: all files but hidden ones and those in build/."""
    try:
        output = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        output = b""
    if output:
        return sorted(path for path in output.decode().split("\0") if path and (root / path).is_file())
    paths = []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name != "build" and not name.startswith(".")]
        paths += [str((Path(folder) / name).relative_to(root)) for name in names if not name.startswith(".")]
    return sorted(paths)


def is_cpp(path):
    return path.endswith((".cpp", ".hpp"))


def is_production(path):
    return is_cpp(path) and path.startswith(("tandem/", "tools/")) and not re.search(r"[_/](test|test_support|bench)\.", path)


def has_plain_words(path):
    return path != "CHANGELOG.md" and not path.startswith("docs/decisions/")


def long_lines(path, lines):
    limit = CPP_COLUMNS if is_cpp(path) else SCRIPT_COLUMNS
    if max(map(len, lines), default=0) <= limit:
        return
    for number, line in enumerate(lines, 1):
        if len(line) > limit:
            yield Finding(Place("columns", path), number, 1, f"{len(line)} columns, {limit} at most", REMEDIES["columns"], adds=True)


def shape_findings(path, shape, line_count):
    if line_count > FILE_LINES:
        yield Finding(Place("file", path), 1, line_count, f"a file of {line_count} lines, {FILE_LINES} at most", REMEDIES["file"])
    for function in shape.functions:
        first = shape.line(function.start)
        length = shape.line(function.end) - first + 1
        if length > FUNCTION_LINES:
            yield Finding(Place("function", path, function.name), first, length,
                          f"{function.name} has {length} lines, {FUNCTION_LINES} at most", REMEDIES["function"])
    for one in shape.classes:
        if len(one.public) > PUBLIC_NAMES:
            yield Finding(Place("class", path, one.name), shape.line(one.start), len(one.public),
                          f"{one.name} has {len(one.public)} public names, {PUBLIC_NAMES} at most", REMEDIES["class"])


def cpp_comments(shape):
    """The comments as (first line, texts of lines); those of lines that follow each other are one."""
    found = []
    for start, text in shape.comments:
        lines = [re.sub(r"^\s*(?:///?<?|/\*+|\*+(?!/))\s?|\s*\*/$", "", line).strip() for line in text.split("\n")]
        alone = not shape.source[shape.source.rfind("\n", 0, start) + 1:start].strip()
        first = shape.line(start)
        if found and alone and found[-1][2] and found[-1][0] + len(found[-1][1]) == first:
            found[-1][1].extend(lines)
        else:
            found.append((first, lines, alone))
    return [(first, lines) for first, lines, _ in found]


def hash_comments(lines):
    """The comments of CMake, Python and shell that fill a line; what stands behind code may be part of a string."""
    found = []
    for number, line in enumerate(lines, 1):
        comment = re.match(r"\s*#+(?!!)\s?(.*)", line)
        if comment and found and found[-1][0] + len(found[-1][1]) == number:
            found[-1][1].append(comment.group(1))
        elif comment:
            found.append((number, [comment.group(1)]))
    return found


def paragraphs(lines):
    """The paragraphs of Markdown as (first line, texts of lines), without lists' and headings' marks and without code."""
    found, open_fence = [], False
    for number, line in enumerate(lines, 1):
        open_fence ^= line.lstrip().startswith("```")
        text = re.sub(r"^\s*(?:[-*#>]+|\d+\.)\s+", "", line)
        if open_fence or not text.strip() or text.startswith("|"):
            found.append((number, [text] if text.startswith("|") and not open_fence else []))
        elif found and found[-1][1] and found[-1][0] + len(found[-1][1]) == number and text == line:
            found[-1][1].append(text)
        else:
            found.append((number, [text]))
    return [block for block in found if block[1]]


def forbidden_words(path, blocks):
    for first, lines in blocks:
        text = " ".join(lines)
        lower_text = text.lower()
        if not any(part in lower_text for part in PARTS):
            continue
        text = CODE.sub(lambda code: "`" + "_" * (len(code.group()) - 2) + "`", text)
        for name, pattern, remedy in WORDS:
            for match in pattern.finditer(text):
                line, passed = first, 0
                for one in lines:
                    passed += len(one) + 1
                    if match.end() <= passed:
                        break
                    line += 1
                words = match.group().strip(" .:;")
                yield Finding(Place("words", path, name), line, 1, f'the words "{words}"', remedy, adds=True)


def long_helps(path, source):
    options = list(OPTION.finditer(source))
    for option, following in zip(options, [match.start() for match in options[1:]] + [len(source)]):
        text = HELP.search(source, option.end(), following)
        if text:
            length = len("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text.group(1))))
            if length > HELP_CHARACTERS:
                yield Finding(Place("help", path, option.group(1)), source.count("\n", 0, text.start()) + 1, length,
                              f"the help of option {option.group(1)} has {length} characters, {HELP_CHARACTERS} at most", REMEDIES["help"])


def unused_headers(paths, included_by):
    for path in paths:
        if path.endswith(".hpp") and is_production(path) and not UMBRELLA.fullmatch(path) and not included_by[path] - {path}:
            yield Finding(Place("header", path), 1, 1, "no file includes this header", REMEDIES["header"])


def findings_of(root):
    """All findings, before exceptions, and the number of files that were read."""
    findings, included_by, paths = [], defaultdict(set), tracked_files(root)
    for path in paths:
        if not (is_cpp(path) or path.endswith(SCRIPTS) or path.endswith((".md", ".in"))):
            continue
        source = (root / path).read_text(encoding="utf-8", errors="replace")
        lines = source.split("\n")
        if lines[-1] == "":
            lines.pop()
        for name in INCLUDE.findall(source):
            included_by[name].add(path)
        if path.endswith(".md"):
            findings += forbidden_words(path, paragraphs(lines)) if has_plain_words(path) else []
            continue
        if path.endswith(".in"):
            continue
        findings += long_lines(path, lines)
        if not (is_cpp(path) or path.endswith(".js")):
            findings += forbidden_words(path, hash_comments(lines))
            continue
        shape = Shape(source, comments_only=not is_production(path))
        findings += forbidden_words(path, cpp_comments(shape))
        if is_production(path):
            if not shape.understood:
                findings.append(Finding(Place("brackets", path), 1, 1, "its brackets do not fit one another", "balance them in each branch of #if"))
            findings += shape_findings(path, shape, len(lines))
            findings += long_helps(path, source)
    return findings + list(unused_headers(paths, included_by)), len(paths)


KINDS = ("columns", "function", "file", "class", "words", "help", "header")
EXCEPTION = re.compile(r"(\S+)(?: (\S.*?))? (\d+): (\S.*)")


@dataclass
class Exceptions:
    """exceptions.txt: line numbers, numbers and reasons by place, and its lines."""
    path: Path
    lines: list
    line_of: dict
    number_of: dict
    complaints: list


def read_exceptions(path, name):
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    exceptions, kind = Exceptions(path, lines, {}, {}, []), None
    for at, line in enumerate(lines, 1):
        section, entry = re.fullmatch(r"\[(\w+)\]", line), EXCEPTION.fullmatch(line)
        if not line.strip() or line.startswith("#"):
            continue
        if section and section.group(1) in KINDS:
            kind = section.group(1)
        elif not entry or not kind:
            exceptions.complaints.append(f'{name}:{at}: no exception: write "path [name] number: reason" below one of [{"], [".join(KINDS)}]')
        else:
            place = Place(kind, entry.group(1), entry.group(2) or "")
            if place in exceptions.number_of:
                exceptions.complaints.append(f"{name}:{at}: {place} stands twice: remove this line")
            exceptions.line_of[place], exceptions.number_of[place] = at, int(entry.group(3))
    return exceptions


def exception_for(finding, exceptions):
    """The exception of the finding's file, or else of the folder around it whose path is longest; None if there is neither."""
    place = finding.place
    if place in exceptions.number_of:
        return place
    for folder in Path(place.path).parents if finding.adds else ():
        around = Place(place.kind, f"{folder}/" if str(folder) != "." else "./", place.name)
        if around in exceptions.number_of:
            return around
    return None


def judge(findings, exceptions, name):
    """What is wrong, and the present number of each exception that something needs."""
    excepted, complaints = defaultdict(list), list(exceptions.complaints)
    for finding in findings:
        place = exception_for(finding, exceptions)
        if place:
            excepted[place].append(finding)
        else:
            complaints.append(f"{finding.place.path}:{finding.line}: {finding.what}: {finding.remedy}")
    present = {}
    for place, number in exceptions.number_of.items():
        ones = excepted.get(place, [])
        here = f"{name}:{exceptions.line_of[place]}"
        value = present[place] = sum(one.value for one in ones) if any(one.adds for one in ones) else max((one.value for one in ones), default=0)
        if value == 0:
            complaints.append(f"{here}: [{place.kind}] {place} keeps to the limit: remove this line")
        elif value > number:
            worst = max(ones, key=lambda one: one.value)
            if not worst.adds:
                complaints.append(f"{place.path}:{worst.line}: {worst.what}, and {number} by {here}: {worst.remedy}")
            else:
                complaints.append(f"{place}: {value} of {place.kind}, {number} by {here}: repair those that are new:")
                complaints += [f"  {one.place.path}:{one.line}: {one.what}: {one.remedy}" for one in ones]
    return complaints, present


def lower(exceptions, present):
    """Writes exceptions.txt anew with the present numbers where they are lower, without what nothing needs."""
    place_at = {at: place for place, at in exceptions.line_of.items()}
    lines = []
    for at, line in enumerate(exceptions.lines, 1):
        place = place_at.get(at)
        if place is None:
            lines.append(line)
        elif present[place]:
            number = exceptions.number_of[place]
            start, reason = line.split(f" {number}: ", 1)
            lines.append(f"{start} {min(number, present[place])}: {reason}")
    exceptions.path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path, help="the root of the project")
    parser.add_argument("--lower", action="store_true", help="write lower numbers into exceptions.txt, and remove exceptions that nothing needs")
    parser.add_argument("--all", action="store_true", help="show what exceptions allow, too")
    arguments = parser.parse_args()
    name = "tests/tidy/exceptions.txt"
    exceptions = read_exceptions(arguments.root / name, name)
    findings, file_count = findings_of(arguments.root)
    if file_count == 0:
        sys.exit(f"{arguments.root} has no files to look at")
    if arguments.lower:
        lower(exceptions, judge(findings, exceptions, name)[1])
        exceptions = read_exceptions(arguments.root / name, name)
    complaints, _ = judge(findings, exceptions, name)
    for finding in findings if arguments.all else ():
        print(f"{finding.place.path}:{finding.line}: [{finding.place.kind}] {finding.what}")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{file_count} files, {len(exceptions.number_of)} exceptions, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
