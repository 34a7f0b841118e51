#!/usr/bin/env python3
# tests/layers/check_descriptors.py: every descriptor that Tandem opens is closed by exec().
# Usage: check_descriptors.py [--self-test] PROJECT_FOLDER
"""Looks at each call that makes a descriptor, outside tests and benchmarks, for the flag that closes it. A call that is meant to leave
its descriptor to other programs says so by the word `inherited` in a comment on its line."""
import pathlib
import re
import sys

# The call, and what its arguments must hold. SYS_pidfd_open sets the flag by itself.
CALLS = {
    r"socket|socketpair|accept4": "SOCK_CLOEXEC",
    r"accept": None,  # accept4
    r"epoll_create1": "EPOLL_CLOEXEC",
    r"epoll_create": None,
    r"eventfd": "EFD_CLOEXEC",
    r"timerfd_create": "TFD_CLOEXEC",
    r"signalfd": "SFD_CLOEXEC",
    r"memfd_create": "MFD_CLOEXEC",
    r"inotify_init1": "IN_CLOEXEC",
    r"pipe2|mkostemp|dup3": "O_CLOEXEC",
    r"pipe|mkstemp|dup|inotify_init|popen|tmpfile": None,
    r"open|openat|open64": "O_CLOEXEC",
    r"fopen": r'"[a-z+]*e[a-z+]*"',
}
# Calls of the system: unqualified or of the global namespace, with arguments that only those have.
PATTERN = re.compile(r"(?<![\w.>])(?:(?<!:)::|std::)?(" + "|".join(CALLS) + r")\(")
LISTED = {name: flag for names, flag in CALLS.items() for name in names.split("|")}


def arguments(text, at):
    depth, end = 1, at
    while end < len(text) and depth > 0:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[at:end - 1]


def is_system_call(name, given):
    if name in ("open", "openat", "open64"):
        return "O_" in given  # others are members and functions of this project
    if name in ("socket", "accept", "accept4"):
        return given.count(",") >= 2
    if name in ("pipe", "dup", "popen", "tmpfile", "inotify_init", "epoll_create", "mkstemp"):
        return given.strip() != "" and "*" not in given and "&" not in given.split(",")[0] and " " not in given.split(",")[0].strip()
    return True


def findings(text):
    for match in PATTERN.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1:text.find("\n", match.start())]
        if line.lstrip().startswith(("//", "///")) or "inherited" in line.partition("//")[2]:
            continue
        name, given = match.group(1), arguments(text, match.end())
        if not is_system_call(name, given):
            continue
        flag = LISTED[name]
        if flag is None or not re.search(flag, given):
            yield text.count("\n", 0, match.start()) + 1, line.strip()


def self_test():
    for wrong in ("int a = socket(AF_UNIX, SOCK_STREAM, 0);\n", "x = ::open(path, O_RDONLY);\n", "FILE* f = std::fopen(p, \"wb\");\n",
                  "accept(listener, nullptr, nullptr);\n", "epoll_create1(0);\n", "if (pipe(ends) != 0) return;\n"):
        assert list(findings(wrong)), wrong
    for right in ("socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);\n", "Session::open(options);\n", "reader->open(path);\n",
                  "std::fopen(p, \"wbe\");\n", "open(\"/dev/null\", O_RDWR);  // inherited\n", "// open(path, O_RDONLY)\n",
                  "SplicePipe& pipe() noexcept;\n", "void accept(float ns) noexcept;\n", ": socket(std::move(taken)), a(b) {}\n"):
        assert not list(findings(right)), right


def main():
    words = sys.argv[1:]
    if words and words[0] == "--self-test":
        self_test()
        words = words[1:]
    project = pathlib.Path(words[0])
    failures = 0
    for file in sorted(path for folder in ("tandem", "tools") for path in (project / folder).rglob("*.[ch]pp")):
        if re.search(r"_(test|bench|test_support)\.|/test/|raw_peer", str(file)):
            continue
        for number, line in findings(file.read_text()):
            print(f"{file.relative_to(project)}:{number}: exec() leaves this descriptor open: {line}")
            failures += 1
    sys.exit(1 if failures else 0)


main()
