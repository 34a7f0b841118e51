// tandem/analysis/history/event_fields.hpp: numbers of events in the widths in which tools store them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tandem/trace/read/reader.hpp"

namespace tandem::analysis {

inline std::uint32_t u32(const trace::Event& event, std::size_t field) noexcept {
  return static_cast<std::uint32_t>(event.number(field));
}
inline std::uint16_t u16(const trace::Event& event, std::size_t field) noexcept {
  return static_cast<std::uint16_t>(event.number(field));
}

/// Whether a site of this codelet submits nodes of the graph that do not run on workers.
inline bool is_node(std::string_view codelet) noexcept {
  return codelet == "(join)" || codelet == "(event)" || codelet == "(application)";
}

}  // namespace tandem::analysis
