// tandem/analysis/tables/texts.hpp: strings by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tandem::analysis {

/// Strings by number, each once: tables hold numbers. 0 is the empty string.
class Texts {
 public:
  using Id = std::uint32_t;

  Texts() { add(""); }
  Id add(std::string_view text);
  const std::string& operator[](Id id) const { return *texts_[id]; }
  std::size_t size() const noexcept { return texts_.size(); }

 private:
  std::unordered_map<std::string, Id> ids_;
  std::vector<const std::string*> texts_;  ///< keys of the map, which do not move
};

}  // namespace tandem::analysis
