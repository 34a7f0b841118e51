// tandem/analysis/event_fields.hpp: numbers of events in the widths that tools keep them in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/trace/read/reader.hpp"

namespace tandem::analysis {

inline std::uint32_t u32(const trace::Event& event, std::size_t field) noexcept {
  return static_cast<std::uint32_t>(event.number(field));
}
inline std::uint16_t u16(const trace::Event& event, std::size_t field) noexcept {
  return static_cast<std::uint16_t>(event.number(field));
}

}  // namespace tandem::analysis
