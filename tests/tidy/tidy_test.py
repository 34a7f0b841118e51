#!/usr/bin/env python3
# tests/tidy/tidy_test.py: tidy finds each kind of wrong thing in small made-up trees, and nothing in sound ones.
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import tidy  # noqa: E402
from cpp_shape import Shape  # noqa: E402

SOUND = {
    "tandem/base/a.hpp": "// tandem/base/a.hpp: a class.\n#pragma once\nclass A {\n public:\n  int value() const { return value_; }\n\n"
                         " private:\n  int value_ = 0;\n};\n",
    "tandem/base/a.cpp": '// tandem/base/a.cpp: an object.\n#include "tandem/base/a.hpp"\nA one;\n',
    "tandem/base/CMakeLists.txt": "# tandem/base/CMakeLists.txt: the module.\ntandem_module(base SOURCES a.cpp)\n",
    "tandem/tandem.hpp": '// tandem/tandem.hpp: what users include.\n#include "tandem/base/a.hpp"\n',
    "README.md": "# Made up\n\nThe ranks exchange messages.\n",
    "CHANGELOG.md": "Whoever reads this finds history.\n",
    "docs/decisions/0001-a.md": "Whoever decided this had a reason.\n",
}


def function(name, lines):
    """A function of so many lines, its head and its brace included."""
    return f"int {name}(int a) {{\n" + "  a += 1;\n" * (lines - 3) + "  return a;\n}\n"


def methods(count):
    return "".join(f"  void do_{number}();\n" for number in range(count))


def option(name, help_text):
    return f'void add(Registry& registry) {{\n  registry.add({{.name = "{name}", .default_value = "",\n                .help = {help_text}}});\n}}\n'


class Tidy(unittest.TestCase):
    def judged(self, files, exceptions=""):
        """The complaints about the sound tree with these files besides."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**SOUND, **files}.items():
                (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / path).write_text(text, encoding="utf-8")
            listed = Path(folder) / "exceptions.txt"
            listed.write_text(exceptions, encoding="utf-8")
            found = tidy.read_exceptions(listed, "exceptions.txt")
            complaints, present = tidy.judge(tidy.findings_of(Path(folder))[0], found, "exceptions.txt")
            tidy.lower(found, present)
            self.lowered = listed.read_text(encoding="utf-8")
        return complaints

    def assert_sound(self, files, exceptions=""):
        self.assertEqual(self.judged(files, exceptions), [])

    def assert_wrong(self, start, files, exceptions=""):
        """Exactly one complaint, which begins so and ends with a remedy."""
        complaints = self.judged(files, exceptions)
        self.assertEqual(len(complaints), 1, complaints)
        self.assertTrue(complaints[0].startswith(start), complaints[0])
        self.assertRegex(complaints[0], r": [^:]+$")

    def test_a_sound_tree_has_no_complaints(self):
        self.assert_sound({})

    def test_lines_of_each_kind_have_a_limit(self):
        for path, limit in {"tandem/base/b.cpp": 120, "tests/b_test.cpp": 120, "a.js": 150, "a.py": 150, "a.sh": 150,
                            "a.cmake": 150, "tests/CMakeLists.txt": 150}.items():
            self.assert_sound({path: "\n" + "x" * limit + "\n"})
            self.assert_wrong(f"{path}:2: {limit + 1} columns", {path: "\n" + "x" * (limit + 1) + "\n"})
        self.assert_sound({"long.md": "x" * 500})

    def test_columns_are_characters_not_bytes(self):
        self.assert_sound({"tandem/base/b.cpp": "// " + "\u00b5" * 117 + "\n"})
        self.assert_wrong("tandem/base/b.cpp:1: 121 columns", {"tandem/base/b.cpp": "// " + "\u00b5" * 118 + "\n"})

    def test_functions_have_a_limit_in_production_alone(self):
        self.assert_sound({"tandem/base/b.cpp": function("f", 60)})
        self.assert_wrong("tandem/base/b.cpp:1: f has 61 lines", {"tandem/base/b.cpp": function("f", 61)})
        self.assert_wrong("tools/b.cpp:3: f has 61 lines", {"tools/b.cpp": "namespace {\n\n" + function("f", 61) + "}\n"})
        self.assert_wrong("tandem/base/b.cpp:2: f has 61 lines", {"tandem/base/b.cpp": "struct S {\n" + function("f", 61) + "};\n"})
        self.assert_sound({"tandem/base/b_test.cpp": function("f", 61), "benchmarks/b.cpp": function("f", 61)})

    def test_files_have_a_limit_in_production_alone(self):
        self.assert_sound({"tandem/base/b.cpp": "\n" * 600})
        self.assert_wrong("tandem/base/b.cpp:1: a file of 601 lines", {"tandem/base/b.cpp": "\n" * 601})
        self.assert_sound({"tandem/base/b_test.cpp": "\n" * 601})

    def test_public_names_have_a_limit(self):
        self.assert_sound({"tandem/base/b.cpp": "struct S {\n" + methods(30) + "};\n"})
        self.assert_wrong("tandem/base/b.cpp:1: S has 31 public names", {"tandem/base/b.cpp": "struct S {\n" + methods(31) + "};\n"})
        private = "class S {\n" + methods(31) + " public:\n  S();\n" + "  void overloaded(int);\n" * 31 + "};\n"
        self.assert_sound({"tandem/base/b.cpp": private})

    def test_a_header_that_nobody_includes_is_found(self):
        self.assert_wrong("tandem/base/b.hpp:1: no file includes", {"tandem/base/b.hpp": "#pragma once\n"})
        self.assert_sound({"tandem/base/b.hpp": "#pragma once\n", "tools/b.cpp": "#include <tandem/base/b.hpp>\n"})

    def test_helps_of_options_have_a_limit(self):
        self.assert_sound({"tandem/base/b.cpp": option("a", f'"{"x" * 80}"\n  "{"y" * 80}"')})
        self.assert_wrong("tandem/base/b.cpp:3: the help of option a has 161", {"tandem/base/b.cpp": option("a", f'"{"x" * 80}"\n  "{"y" * 81}"')})

    def test_forbidden_words_are_found_in_comments_and_markdown(self):
        for path, text, start in (
                ("tandem/base/b.cpp", "int a;  // whoever waits\n", 'tandem/base/b.cpp:1: the words "whoever"'),
                ("tandem/base/b_test.cpp", "/* a\n * card\n */\n", 'tandem/base/b_test.cpp:2: the words "card"'),
                ("tandem/base/b.cpp", "// Memory that is given\n// back here.\n", 'tandem/base/b.cpp:2: the words "given back"'),
                ("tandem/base/b.cpp", "/// The same without options.\n", 'tandem/base/b.cpp:1: the words "The same without"'),
                ("tandem/base/b.cpp", "// A line. Who leaves first\n", 'tandem/base/b.cpp:1: the words "Who"'),
                ("a.py", "a = 1\n# `dm` and its kin\n", 'a.py:2: the words "kin"'),
                ("a.sh", "# asked in vain\n", 'a.sh:1: the words "in vain"'),
                ("docs/a.md", "# A\n\n- one\n- A worker looks after it.\n", 'docs/a.md:4: the words "looks after"'),
                ("docs/a.md", "| a | whom it concerns |\n", 'docs/a.md:1: the words "whom"')):
            self.assert_wrong(start, {path: text})
        self.assert_sound({
            "tandem/base/b.cpp": '// `card` is a name of code; network card, who sent to whom, with the same seed\nconst char* a = "whoever";\n'
                                 "// The same program runs on more ranks.\n",
            "docs/a.md": "```\n# whoever\n```\nWho waits? One thread.\n"})

    def test_brackets_that_do_not_fit_are_an_error(self):
        self.assert_wrong("tandem/base/b.cpp:1: its brackets", {"tandem/base/b.cpp": "int f() { return (1; }\n"})

    def test_an_exception_allows_its_number_and_no_more(self):
        files = {"tandem/base/b.cpp": function("f", 70)}
        self.assert_sound(files, "# why\n[function]\ntandem/base/b.cpp f 70: a list\n")
        self.assert_sound(files, "[function]\ntandem/base/b.cpp f 80: a list\n")
        self.assertIn("tandem/base/b.cpp f 70: a list", self.lowered)
        self.assert_wrong("tandem/base/b.cpp:1: f has 70 lines, 60 at most, and 69 by exceptions.txt:2", files,
                          "[function]\ntandem/base/b.cpp f 69: a list\n")

    def test_an_exception_of_a_folder_counts_what_lies_in_it(self):
        files = {"tests/a.cpp": "x" * 121 + "\n", "tests/b/c.cpp": ("x" * 121 + "\n") * 2}
        self.assert_sound(files, "[columns]\ntests/ 3: long\n")
        self.assert_sound(files, "[columns]\ntests/ 1: long\ntests/b/ 2: long\n")
        complaints = self.judged(files, "[columns]\ntests/ 2: long\n")
        self.assertTrue(complaints[0].startswith("tests/: 3 of columns, 2 by exceptions.txt:2"), complaints)
        self.assertEqual([one.strip().split(" ")[0] for one in complaints[1:]], ["tests/a.cpp:1:", "tests/b/c.cpp:1:", "tests/b/c.cpp:2:"])

    def test_an_exception_that_nothing_needs_is_an_error(self):
        self.assert_wrong("exceptions.txt:2: [file] tandem/base/a.cpp keeps to the limit", {}, "[file]\ntandem/base/a.cpp 700: large\n")
        self.assertEqual(self.lowered, "[file]\n")

    def test_an_exception_has_a_kind_a_number_and_a_reason(self):
        for text in ("tandem/base/a.cpp 700: no kind\n", "[file]\ntandem/base/a.cpp 700:\n", "[file]\ntandem/base/a.cpp: no number\n", "[unknown]\n"):
            self.assert_wrong("exceptions.txt:", {}, text)

    def test_git_tells_which_files_are_the_project_s(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "build").mkdir()
            for path in ("a.cpp", "b.cpp", "build/c.cpp"):
                (Path(folder) / path).write_text("")
            self.assertEqual(tidy.tracked_files(Path(folder)), ["a.cpp", "b.cpp"])
            try:
                for words in (["init", "-q"], ["add", "a.cpp"]):
                    subprocess.run(["git", "-C", folder, *words], check=True)
            except OSError:
                self.skipTest("there is no git")
            self.assertEqual(tidy.tracked_files(Path(folder)), ["a.cpp"])


class CppShape(unittest.TestCase):
    def functions(self, source):
        shape = Shape(source)
        self.assertTrue(shape.understood)
        return [(one.name, shape.line(one.start), shape.line(one.end)) for one in shape.functions]

    def names(self, body):
        return sorted(Shape("struct S {\n" + body + "\n};\n").classes[0].public)

    def test_functions_are_found_by_their_braces(self):
        self.assertEqual(self.functions("namespace a {\nint f() {\n  if (1) { }\n  return 0;\n}\nextern \"C\" {\nvoid g() {}\n}\n}\n"),
                         [("f", 2, 5), ("g", 7, 7)])
        self.assertEqual(self.functions("template <class T>\nauto S<T>::f(int a) const -> std::vector<int> {\n  return {a};\n}\n"), [("S::f", 1, 4)])
        self.assertEqual(self.functions("S::S(int a) : a_{a}, b_(a), c_{1, 2} {\n}\n"), [("S::S", 1, 2)])
        self.assertEqual(self.functions("bool operator<(S a, S b) {\n}\nbool S::operator()(int) {\n}\n"),
                         [("operator_", 1, 2), ("S::operator_", 3, 4)])
        self.assertEqual(self.functions("std::function<void(int)> f(int a = 3, S b = {}) noexcept {\n}\n"), [("f", 1, 2)])

    def test_what_is_no_function_is_not_one(self):
        source = "int a{1};\nint b[] = {1, 2};\nconst auto f = [](int x) { return x; };\nenum class E { a, b };\nS s({1});\n"
        self.assertEqual(self.functions(source), [])

    def test_strings_and_comments_and_directives_have_no_braces(self):
        self.assertEqual(self.functions("void f() {\n  g(\"}\", '}', '\"', R\"x(}\")x\", 1'000);  // }\n  /* } */\n#define A }\n}\n"), [("f", 1, 5)])
        self.assertEqual(self.functions("#if A\nvoid f() {\n#else\nvoid f(int) {\n#endif\n}\n"), [("f", 2, 6)])

    def test_public_names_are_functions_and_data(self):
        self.assertEqual(self.names("  S();\n  ~S();\n  S& operator=(const S&) = delete;\n  void f(int a = 1, T b = {});\n  void f(char);"),
                         ["f", "operator_"])
        self.assertEqual(self.names("  int a = 1, b = g(2);\n  std::map<int, char> c;\n  int d[3], e : 2;\n  void (*f)(int);\n  T t{1, 2};"),
                         ["a", "b", "c", "d", "e", "f", "t"])
        self.assertEqual(self.names("  using A = int;\n  friend class B;\n  struct C { int x; };\n  enum D { y };\n"
                                    "  static_assert(sizeof(int) == 4);\n"
                                    "  [[nodiscard]] int g() const { return 1; }\n private:\n  int h;\n public:\n  int i;"), ["g", "i"])


if __name__ == "__main__":
    unittest.main()
