# tests/tidy/cpp_shape.py: functions, classes and comments of a C++ source, found by its brackets.
"""Not a parser: strings, comments and preprocessor lines become blanks, and what stands before a `{` says what it opens.

Blanks keep every character's place, so a position in the blanked text is one in the source.
"""
import bisect
import re
from dataclasses import dataclass, field

# Each alternative begins with a letter, by which the search skips what is neither. The last is the ' in 1'000.
TOKEN = re.compile(
    r"//(?:[^\n\\]|\\.|\\\n)*"
    r"|/\*(?:.|\n)*?\*/"
    r'|R"(?P<tag>[^()\s\\]{0,16})\((?:.|\n)*?\)(?P=tag)"'
    r'|"(?:[^"\\\n]|\\.|\\\n)*"'
    r"|'(?<![0-9a-fA-F]')(?:[^'\\\n]|\\.)+'"
    r"|'")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
CONDITION = re.compile(r"\s*#\s*(if|el|endif)")
OPERATOR = re.compile(r"\boperator\s*(?:\(\s*\)|\[\s*\]|[^\s\w(]+|[\w:]+(?:\s*[*&])?)")
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)", re.DOTALL)
CLASS = re.compile(r"\s*(?:(?:typedef|static|inline|constexpr|const|mutable)\s+)*(class|struct|union)\b(.*)", re.DOTALL)
NO_MEMBER = re.compile(r"\s*(friend|using|typedef|static_assert|enum|class|struct|union)\b")
NO_NAME = {"catch", "noexcept", "decltype", "requires", "explicit", "alignas", "sizeof", "__attribute__"}
CLOSING = {"{": "}", "(": ")"}


def blanked(text):
    return "\n".join(" " * len(line) for line in text.split("\n"))


def without_comments(source):
    """The source with blanks for comments and strings, and its comments as (position, text)."""
    comments = []

    def blank(match):
        if match.group().startswith("/"):
            comments.append((match.start(), match.group()))
        return blanked(match.group())

    return TOKEN.sub(blank, source), comments


def without_directives(code, first_branch_only):
    """Blanks for preprocessor lines, and on request for what stands behind #else and #elif."""
    if not first_branch_only:
        return DIRECTIVE.sub(lambda match: blanked(match.group()), code)
    lines, branches, continued = [], [], False
    for line in code.split("\n"):
        condition = CONDITION.match(line)
        if condition and condition.group(1) == "if":
            branches.append(False)
        elif condition and branches:
            branches[-1] = True
            if condition.group(1) == "endif":
                branches.pop()
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        lines.append(blanked(line) if directive or any(branches) else line)
    return "\n".join(lines)


def brackets(code):
    """Where each ( and { is closed, or None if they do not fit."""
    open_ones, closed_at = [], {}
    for match in re.finditer(r"[(){}]", code):
        if match.group() in CLOSING:
            open_ones.append(match)
        elif not open_ones or CLOSING[open_ones[-1].group()] != match.group():
            return None
        else:
            closed_at[open_ones.pop().start()] = match.start()
    return None if open_ones else closed_at


def without_angles(text):
    """The text without what stands in < >, and with names for operators, so that neither looks like a list of arguments."""
    if "operator" in text:
        text = OPERATOR.sub("operator_", text)
    if "<" not in text:
        return text
    text = text.replace("->", "  ").replace("<<", "  ").replace("<=", "  ")
    before = None
    while before != text:
        before, text = text, re.sub(r"<[^<>]*>", "", text)
    return text


def without_groups(text):
    """The text with (), {} and [] for what stands in these brackets."""
    before = None
    while before != text:
        before, text = text, re.sub(r"\([^(){}\[\]]+\)|\{[^(){}\[\]]+\}|\[[^(){}\[\]]+\]",
                                    lambda match: match.group()[0] + match.group()[-1], text)
    return text


def name_before_arguments(text):
    """The name of a function whose declaration this is, or None."""
    for match in re.finditer(r"([~\w]+(?:\s*::\s*[~\w]+)*)\s*\(", text):
        if match.group(1) not in NO_NAME:
            return re.sub(r"\s", "", match.group(1))
    return None


def declared_names(head):
    """The names that a declaration inside a class declares."""
    text = without_angles(ATTRIBUTE.sub("", head))
    pointer = re.match(r"[^=(]*\(\s*[*&]+\s*(\w+)\s*\)\s*\(", text)
    if pointer:
        return [pointer.group(1)]
    text = without_groups(text)
    name = name_before_arguments(text.split("=", 1)[0])
    if name:
        return [name]
    parts = (re.sub(r"=.*|:.*|\{\}|\[\]", "", part.replace("::", "."), flags=re.DOTALL) for part in text.split(","))
    return [words[-1] for words in (re.findall(r"[A-Za-z_]\w*", part) for part in parts) if words]


@dataclass
class Function:
    name: str
    start: int
    end: int


@dataclass
class Class:
    name: str
    start: int
    public: set = field(default_factory=set)


class Shape:
    """The comments, functions and classes of one source; `understood` is false if its brackets do not fit."""

    def __init__(self, source, comments_only=False):
        self.source = source
        self.functions, self.classes = [], []
        code, self.comments = without_comments(source)
        self._line_starts = [0] + [match.end() for match in re.finditer("\n", source)]
        if comments_only:
            return
        self._code = without_directives(code, False)
        self._closed_at = brackets(self._code)
        if self._closed_at is None:
            self._code = without_directives(code, True)  # branches of #if may open a bracket each, and close it together
            self._closed_at = brackets(self._code)
        self.understood = self._closed_at is not None
        if self.understood:
            self._scope(0, len(self._code), None, "")

    def line(self, position):
        return bisect.bisect_right(self._line_starts, position)

    def _scope(self, start, end, owner, access):
        """Reads the declarations from start to end; owner is the Class whose members they are, or None."""
        begin, at = start, start
        token = re.compile(r"[{(;]|\b(?:public|protected|private)\s*:(?!:)")
        while (match := token.search(self._code, at, end)):
            at = match.end()
            if match.group() == "(":
                at = self._closed_at[match.start()] + 1
            elif match.group() == ";":
                self._member(owner, access, self._code[begin:match.start()])
                begin = at
            elif match.group() == "{":
                close = self._closed_at[match.start()]
                begin = close + 1 if self._opens(begin, match.start(), close, owner, access) else begin
                at = close + 1
            else:
                access, begin = match.group().rstrip(": \n\t"), at

    def _opens(self, begin, brace, close, owner, access):
        """Reads what this { opens. False: an initialiser, behind which the declaration goes on."""
        whole = self._code[begin:brace]
        head = ATTRIBUTE.sub("", whole) if "[[" in whole or "alignas" in whole else whole
        start = begin + len(whole) - len(whole.lstrip())
        plain = re.sub(r"^\s*(?:template\b\s*)+", "", without_angles(head))
        if re.match(r"\s*(inline\s+)?namespace\b", plain) or re.fullmatch(r"\s*extern\s*", plain):
            self._scope(brace + 1, close, None, "")
            return True
        if re.match(r"\s*(?:typedef\s+)?enum\b", plain):
            return True
        kind = CLASS.match(plain)
        if kind and "(" not in plain and "=" not in plain:
            words = re.findall(r"\w+", re.sub(r"\bfinal\b|(?<!:):(?!:).*", "", kind.group(2), flags=re.DOTALL))
            inner = Class(words[-1] if words else "(unnamed)", start)
            self.classes.append(inner)
            self._scope(brace + 1, close, inner, "private" if kind.group(1) == "class" else "public")
            return True
        return self._function(plain, start, close, owner, access)

    def _function(self, plain, start, close, owner, access):
        flat = without_groups(plain)
        name = name_before_arguments(flat.split("=", 1)[0])
        if name is None:
            return False
        initialisers = re.search(r"\)[^:]*(?<!:):(?!:)", flat)
        if initialisers and re.search(r"[\w>]\s*$", flat) and not re.search(r"\)\s*(const|noexcept|override|final|try)\s*$", flat):
            return False  # a_{1} in a constructor's list
        self.functions.append(Function(name, start, close))
        if owner and access == "public":
            self._count(owner, [name])
        return True

    def _member(self, owner, access, head):
        plain = re.sub(r"^\s*template\b\s*", "", without_angles(head))
        if owner and access == "public" and head.strip() and not NO_MEMBER.match(plain):
            self._count(owner, declared_names(head))

    @staticmethod
    def _count(owner, names):
        """Notes public names. Constructors and the destructor do not count, since every class may have them."""
        owner.public.update(name for name in names if name.lstrip("~") != owner.name)
