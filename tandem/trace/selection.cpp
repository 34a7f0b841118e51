// tandem/trace/selection.cpp: reads and writes selections.
#include "tandem/trace/selection.hpp"

#include <fmt/format.h>

#include <vector>

#include "tandem/base/suggest.hpp"

namespace tandem::trace {

namespace {

Selection only(Type type) noexcept {
  Selection selection;
  selection.add(type);
  return selection;
}

void change(Selection& selection, const Selection& by, bool take_away) noexcept {
  for (std::size_t i = 0; i < selection.words.size(); ++i)
    selection.words[i] = take_away ? selection.words[i] & ~by.words[i] : selection.words[i] | by.words[i];
}

std::vector<std::string> known_words() {
  std::vector<std::string> words{"all", "none"};
  for (std::size_t i = 0; i < kCategories; ++i) words.emplace_back(name_of(static_cast<Category>(i)));
  for (std::size_t i = 0; i < kEventSpecs; ++i)
    if (!is_compound(spec_at(i).type)) words.emplace_back(spec_at(i).name);
  return words;
}

base::Result<Selection> named(std::string_view word) {
  if (word == "all") return Selection::all();
  if (word == "none") return Selection::none();
  for (std::size_t i = 0; i < kCategories; ++i)
    if (word == name_of(static_cast<Category>(i))) return Selection::of(static_cast<Category>(i));
  for (std::size_t i = 0; i < kEventSpecs; ++i)
    if (word == spec_at(i).name && !is_compound(spec_at(i).type)) return only(spec_at(i).type);
  const std::string nearest = base::nearest_name(word, known_words());
  return base::Error{
      base::ErrorCode::invalid_argument,
      fmt::format("a selection of trace events has '{}', which is neither a category nor an event{}; categories are "
                  "task, sched, worker, data, comm, broadcast, dist, flow, tracer, user, and all, none",
                  word, nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest))};
}

}  // namespace

Selection Selection::all() noexcept {
  Selection selection;
  for (std::size_t i = 0; i < kEventSpecs; ++i)
    if (!is_compound(spec_at(i).type)) selection.add(spec_at(i).type);
  return selection;
}

Selection Selection::of(Category category) noexcept {
  Selection selection;
  for (std::size_t i = 0; i < kEventSpecs; ++i)
    if (spec_at(i).category == category && !is_compound(spec_at(i).type)) selection.add(spec_at(i).type);
  return selection;
}

base::Result<Selection> Selection::parse(std::string_view text) {
  Selection selection;
  bool first = true;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (word.empty()) continue;
    const bool take_away = word.front() == '-';
    if (take_away) word.remove_prefix(1);
    if (first && take_away) selection = all();
    first = false;
    auto found = named(word);
    if (!found) return found.error();
    if (word == "none" && !take_away) selection = none();
    change(selection, found.value(), take_away);
  }
  if (!selection.empty()) change(selection, of(Category::about), false);
  return selection;
}

std::string Selection::described() const {
  if (empty()) return "none";
  if (*this == all()) return "all";
  std::string text;
  const auto add_word = [&](std::string_view sign, std::string_view word) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ",", sign, word);
  };
  std::string exceptions;
  for (std::size_t c = 1; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    std::size_t inside = 0, outside = 0;
    for (std::size_t i = 0; i < kEventSpecs; ++i)
      if (spec_at(i).category == category && !is_compound(spec_at(i).type)) ++(has(spec_at(i).type) ? inside : outside);
    const bool mostly = inside > outside;
    if (mostly) add_word("", name_of(category));
    for (std::size_t i = 0; i < kEventSpecs; ++i) {
      const EventSpec& spec = spec_at(i);
      if (spec.category == category && !is_compound(spec.type) && has(spec.type) != mostly)
        add_word(mostly ? "-" : "", spec.name);
    }
  }
  return text.empty() ? std::string(name_of(Category::about)) : text;
}

}  // namespace tandem::trace
