// tools/command_line.hpp: declaring subcommands and their options. CLI11 parses them; only command_line.cpp includes
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tandem::tools {

/// A declared option. Refers to its CommandLine; the functions return the option, so that calls can be chained.
class Option {
 public:
  explicit Option(CLI::Option* option) noexcept : option_(option) {}

  Option required();
  /// Shows the variable's present value as the default in the help.
  Option show_default();
  /// Sets the name of the value in the help: "N", "FILE".
  Option type_name(const std::string& name);
  /// Takes several values in one argument, separated by commas.
  Option list();
  /// Lets the option be given several times, each time with one value.
  Option repeatable();
  /// Limits the value to 1 to INT_MAX.
  Option positive();
  /// Limits the value to a range; both ends are allowed.
  Option between(double least, double most);
  Option one_of(const std::vector<std::string>& values);
  Option existing_folder();
  /// `check` returns "" for an allowed value, else a sentence about the fault.
  Option check(std::function<std::string(const std::string&)> check);
  /// Forbids the two options together.
  Option excludes(Option other);
  /// Makes this variable of the environment the value of the option unless it is given.
  Option environment(const std::string& variable);
  Option hide_from_help();

 private:
  CLI::Option* option_;
};

/// A subcommand, or the command itself. Refers to its CommandLine.
class Subcommand {
 public:
  explicit Subcommand(CLI::App* app) noexcept : app_(app) {}

  Subcommand add_subcommand(const std::string& name, const std::string& help);
  /// Makes one of the subcommands mandatory.
  void require_subcommand();

  /// Adds an option ("-n,--np") or a positional ("OP"). `value` is set when the command line is parsed, and has to
  /// exist then. An argument that is no value of its type is a wrong use.
  template <class T>
  Option add_option(const std::string& name, T& value, const std::string& help) {
    return add(name, &value, help);
  }
  Option add_flag(const std::string& name, bool& value, const std::string& help = "");
  /// A flag that may have a value behind a =; without one, `value` is `alone`.
  Option add_flag(const std::string& name, std::string& value, const std::string& alone, const std::string& help);
  /// Accepts `word` for the option `name`, as other launchers spell it: a word of several letters behind one dash.
  void also_accept(const std::string& word, const std::string& name);

  /// Makes everything from the first word that is no option belong to a program; `remaining` returns it.
  void take_program(const std::string& help);
  /// As a person writes it: "tandem run".
  std::string name() const;
  std::vector<std::string> remaining() const;
  /// A message such as "--lable is not an option of tandem run (did you mean --label?)".
  std::string unknown_option(const std::string& word) const;

  void footer(const std::string& text);
  /// Sets what is called when the command line names this command, after all options were read.
  void callback(std::function<void()> run);

 private:
  using Target = std::variant<unsigned*, std::uint64_t*, double*, std::string*, std::optional<std::uint32_t>*,
                              std::optional<std::uint64_t>*, std::optional<std::int64_t>*, std::optional<double>*,
                              std::vector<unsigned>*, std::vector<std::string>*>;
  Option add(const std::string& name, Target value, const std::string& help);

  CLI::App* app_;
};

/// The whole command line. Single-threaded.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Subcommand root() noexcept;
  /// Reads the arguments and runs the callback of the command that they name. Returns "" then. Help and version are
  /// printed to standard output, also with "". Otherwise the arguments are wrong, and the result is a sentence about
  /// the fault.
  std::string parse(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace tandem::tools
