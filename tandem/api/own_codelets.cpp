// tandem/api/own_codelets.cpp: one table of names for the process, and a small one for each thread.
#include "tandem/api/own_codelets.hpp"

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "tandem/runtime/task/describe.hpp"

namespace tandem::internal {

namespace {

using Core = std::shared_ptr<runtime::CodeletCore>;

std::shared_ptr<runtime::CodeletCore> make_codelet(const std::string& name) {
  auto codelet = std::make_shared<runtime::CodeletCore>(name);
  codelet->devices.push_back(DeviceKind::cpu);
  return codelet;
}

struct Table {
  std::mutex mutex;
  std::map<std::string, Core, std::less<>> known;  ///< codelets keep their addresses
};
Table& table() {
  static Table table;
  return table;
}

/// Finds or adds a name. Null: there is none of this name, and `names`, if given, is at its limit; otherwise `names`
/// counts a new one.
const Core* in_table(std::string_view name, std::atomic<std::size_t>* names) {
  const std::lock_guard guard(table().mutex);
  auto at = table().known.find(name);
  if (at == table().known.end()) {
    if (names != nullptr && names->load(std::memory_order_relaxed) >= OwnCodelets::kMostNames) return nullptr;
    if (names != nullptr) names->fetch_add(1, std::memory_order_relaxed);
    at = table().known.emplace(name, make_codelet(std::string(name))).first;
  }
  return &at->second;
}

const Core* named(std::string_view name, std::atomic<std::size_t>* names) {
  thread_local std::array<const Core*, 64> recent{};
  const Core*& known = recent[std::hash<std::string_view>{}(name) % recent.size()];
  if (known != nullptr && (*known)->name == name) return known;
  const Core* const found = in_table(name, names);
  if (found != nullptr) known = found;
  return found;
}

const Core* at_line(const SourceLine& where, std::atomic<std::size_t>* names) {
  struct Recent {
    SourceLine where;
    const Core* codelet = nullptr;
  };
  thread_local std::array<Recent, 16> recent{};
  Recent& known = recent[where.line % recent.size()];
  if (known.codelet != nullptr && known.where.line == where.line && known.where.file == where.file)
    return known.codelet;
  const Core* const found = in_table("task at " + runtime::describe(where), names);
  if (found != nullptr) known = {where, found};
  return found;
}

/// Codelet of a name, or of a line; without both: "task".
const Core* own_codelet(std::string_view name, const SourceLine& where, std::atomic<std::size_t>* names) {
  return name.empty() && where ? at_line(where, names) : named(name.empty() ? "task" : name, names);
}

}  // namespace

OwnCodelets::OwnCodelets(std::string_view name, const SourceLine& line)
    : first_(*own_codelet(name, line, nullptr)), file_(line.file), is_named_by_(name.empty() ? line.line : kNamed) {}

const std::shared_ptr<runtime::CodeletCore>& OwnCodelets::other(std::string_view name, const SourceLine& line,
                                                                bool& is_shared) const {
  const Core* const own = own_codelet(name, line, &names_);
  is_shared = own == nullptr;
  return own != nullptr ? *own : first_;
}

}  // namespace tandem::internal
