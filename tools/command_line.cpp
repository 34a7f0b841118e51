// tools/command_line.cpp: subcommands and options by CLI11, with conversions and messages of our own.
#include "tools/command_line.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <map>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "tandem/base/suggest.hpp"
#include "tools/standard_output.hpp"

namespace tandem::tools {
namespace {

/// Option words of several letters behind one dash: those of each command, with their meanings.
std::map<const CLI::App*, std::map<std::string, std::string>>& accepted_words() {
  static std::map<const CLI::App*, std::map<std::string, std::string>> words;
  return words;
}

/// Parses a number. False when the whole text is no number of type T.
template <class T>
bool read_number(std::string_view text, T& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

[[noreturn]] void refuse(const std::string& name, const std::string& text, const char* expected) {
  throw CLI::ValidationError(name, fmt::format("'{}' is not {}", text, expected));
}

void read_value(const std::string&, const std::string& text, std::string& value) { value = text; }
void read_value(const std::string& name, const std::string& text, double& value) {
  if (!read_number(text, value)) refuse(name, text, "a number");
}
template <class T>
  requires std::is_integral_v<T>
void read_value(const std::string& name, const std::string& text, T& value) {
  if (!read_number(text, value)) refuse(name, text, std::is_signed_v<T> ? "a whole number" : "a whole number from 0");
}

template <class T>
void read_values(const std::string& name, const CLI::results_t& texts, T& value) {
  read_value(name, texts.front(), value);
}
template <class T>
void read_values(const std::string& name, const CLI::results_t& texts, std::optional<T>& value) {
  read_value(name, texts.front(), value.emplace());
}
template <class T>
void read_values(const std::string& name, const CLI::results_t& texts, std::vector<T>& values) {
  values.clear();
  for (const std::string& text : texts) read_value(name, text, values.emplace_back());
}

template <class T>
std::string text_of(const T& value) { return fmt::format("{}", value); }
template <class T>
std::string text_of(const std::optional<T>& value) { return value ? text_of(*value) : std::string(); }
template <class T>
std::string text_of(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ",") + text_of(value);
  return text;
}

template <class T>
constexpr const char* type_of(const T*) { return "N"; }
constexpr const char* type_of(const double*) { return "NUMBER"; }
constexpr const char* type_of(const std::optional<double>*) { return "NUMBER"; }
constexpr const char* type_of(const std::string*) { return "TEXT"; }
constexpr const char* type_of(const std::vector<std::string>*) { return "TEXT"; }

template <class T>
constexpr bool is_vector(const T*) { return false; }
template <class T>
constexpr bool is_vector(const std::vector<T>*) { return true; }

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

CLI::App* find_subcommand(CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* subcommand) { return subcommand->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(subcommand->get_name());
  return names;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

/// " (did you mean run?)", or "".
std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = base::nearest_name(word, known);
  return nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest);
}

std::string unknown_option_of(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  const std::string bare = word.substr(0, word.find('='));
  return fmt::format("{} is not an option of {}{}", bare, full_name(app), suggestion(bare, names));
}

/// The command that the words name, and how many of them do so. Sets `wrong` if the next word should name a subcommand,
/// and none has this name.
struct Named {
  CLI::App* app;
  std::size_t words;
  std::string wrong;
};
Named named_command(CLI::App& root, const std::vector<std::string>& words) {
  Named named{&root, 0, ""};
  while (named.words < words.size() && named.app->get_require_subcommand_min() > 0) {
    const std::string& word = words[named.words];
    if (word.starts_with('-')) break;
    CLI::App* const next = find_subcommand(*named.app, word);
    if (next == nullptr) {
      const auto known = subcommand_names(*named.app);
      const std::string nearest = suggestion(word, known);
      named.wrong = fmt::format("{} has no subcommand {}{}", full_name(*named.app), word,
                                nearest.empty() ? "; it has " + joined(known, ", ") : nearest);
      return named;
    }
    named.app = next;
    ++named.words;
  }
  return named;
}

/// Replaces the accepted words of a command by their meanings, up to the first word that is neither an option nor its
/// value.
void replace_accepted_words(const CLI::App& app, std::vector<std::string>& words, std::size_t first) {
  const auto known = accepted_words().find(&app);
  if (known == accepted_words().end()) return;
  for (std::size_t i = first; i < words.size() && words[i].starts_with('-') && words[i] != "--"; ++i) {
    if (const auto found = known->second.find(words[i]); found != known->second.end()) words[i] = found->second;
    const CLI::Option* const option = app.get_option_no_throw(words[i]);
    if (option != nullptr && option->get_items_expected_max() > 0) ++i;
  }
}

/// The sentence for an error of the parser.
std::string message_of(const CLI::ParseError& error, const CLI::App& app) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const auto extras = app.remaining();
    if (!extras.empty() && extras.front().starts_with('-')) return unknown_option_of(app, extras.front());
    if (!extras.empty()) return fmt::format("{} takes no argument {}", full_name(app), extras.front());
  }
  if (app.get_require_subcommand_min() > 0)
    return fmt::format("{} needs a subcommand: {}", full_name(app), joined(subcommand_names(app), ", "));
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    return fmt::format("{}: {} needs a value", full_name(app), text.substr(0, text.find(':')));
  return fmt::format("{}: {}", full_name(app), text);
}

CLI::Validator checked(std::function<std::string(const std::string&)> check) {
  return CLI::Validator([check = std::move(check)](std::string& text) { return check(text); }, "");
}

}  // namespace

Option Option::required() { return option_->required(), *this; }
Option Option::show_default() { return option_->capture_default_str(), *this; }
Option Option::type_name(const std::string& name) { return option_->type_name(name), *this; }
Option Option::list() {
  option_->delimiter(',');
  return type_name(option_->get_type_name() + ",...");
}
Option Option::repeatable() { return option_->expected(1)->allow_extra_args(false)->take_all(), *this; }
Option Option::positive() {
  option_->check(checked([](const std::string& text) {
    double value = 0;
    if (read_number(text, value) && value >= 1 && value <= INT_MAX) return std::string();
    return fmt::format("'{}' is not a whole number from 1 to {}", text, INT_MAX);
  }));
  return *this;
}
Option Option::between(double least, double most) {
  option_->check(checked([least, most](const std::string& text) {
    double value = 0;
    if (read_number(text, value) && value >= least && value <= most) return std::string();
    return fmt::format("'{}' is not a number from {} to {}", text, least, most);
  }));
  return *this;
}
Option Option::one_of(const std::vector<std::string>& values) {
  option_->check(checked([values](const std::string& text) {
    if (std::find(values.begin(), values.end(), text) != values.end()) return std::string();
    return fmt::format("'{}' is none of {}{}", text, joined(values, ", "), suggestion(text, values));
  }));
  return type_name(joined(values, "|"));
}
Option Option::existing_folder() { return option_->check(CLI::ExistingDirectory), type_name("FOLDER"); }
Option Option::check(std::function<std::string(const std::string&)> check) {
  option_->check(checked(std::move(check)));
  return *this;
}
Option Option::excludes(Option other) { return option_->excludes(other.option_), *this; }
Option Option::environment(const std::string& variable) { return option_->envname(variable), *this; }
Option Option::hide_from_help() { return option_->group(""), *this; }

Subcommand Subcommand::add_subcommand(const std::string& name, const std::string& help) {
  return Subcommand(app_->add_subcommand(name, help));
}

void Subcommand::require_subcommand() { app_->require_subcommand(1); }

Option Subcommand::add(const std::string& name, Target target, const std::string& help) {
  return std::visit(
      [&](auto* value) {
        const auto read = [value, name](const CLI::results_t& texts) {
          read_values(name, texts, *value);
          return true;
        };
        CLI::Option* option = app_->add_option(name, read, help, false, [value] { return text_of(*value); });
        option->type_name(type_of(value));
        if (is_vector(value)) option->expected(CLI::detail::expected_max_vector_size);
        return Option(option);
      },
      target);
}

Option Subcommand::add_flag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}

Option Subcommand::add_flag(const std::string& name, std::string& value, const std::string& alone,
                            const std::string& help) {
  const auto read = [alone](const std::string& text) { return text == "true" ? alone : text; };
  return Option(app_->add_flag(name, value, help)->transform(read));
}

void Subcommand::also_accept(const std::string& word, const std::string& name) { accepted_words()[app_][word] = name; }

void Subcommand::take_program(const std::string& help) {
  app_->prefix_command();
  // The positional stands in the usage and takes nothing. Without a positional that is left to fill, CLI11 gives the
  // words behind "--" to the parent of a subcommand.
  app_->validate_positionals();
  app_->add_option("PROGRAM", CLI::callback_t([](const CLI::results_t&) { return true; }), help)
      ->check(checked([](const std::string&) { return std::string("the program's"); }))
      ->type_name("");
}

std::string Subcommand::name() const { return full_name(*app_); }
std::vector<std::string> Subcommand::remaining() const { return app_->remaining(); }
std::string Subcommand::unknown_option(const std::string& word) const { return unknown_option_of(*app_, word); }
void Subcommand::footer(const std::string& text) { app_->footer(text); }
void Subcommand::callback(std::function<void()> run) { app_->callback(std::move(run)); }

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_version_flag("--version", version);
}
CommandLine::~CommandLine() = default;

Subcommand CommandLine::root() noexcept { return Subcommand(app_.get()); }

std::string CommandLine::parse(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const Named named = named_command(*app_, words);
  const std::string see = fmt::format("; see {} --help", full_name(*named.app));
  if (!named.wrong.empty()) return named.wrong + see;
  replace_accepted_words(*named.app, words, named.words);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app_->parse(std::move(words));
  } catch (const CLI::Success& success) {
    std::ostringstream text;  // help or version
    app_->exit(success, text);
    write_output(text.str());
  } catch (const CLI::ParseError& error) {
    return message_of(error, *named.app) + see;
  }
  return "";
}

}  // namespace tandem::tools
