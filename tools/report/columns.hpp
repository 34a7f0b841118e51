// tools/report/columns.hpp: tables of whole numbers as a few bytes, for a page that has to hold millions of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tools/json.hpp"

namespace tandem::tools {

/// Columns of integers, one after the other, that the page's `columns.js` reads.
///
/// Format. A value, or what it has beyond the one before (`delta`), is mapped to 0, 1, 2, ... for 0, -1, 1, ... and written seven
/// bits at a time, the lowest first; the highest bit of a byte says that another one follows. All columns together are compressed
/// by gzip and written in base64. Values must lie within 2^52, as numbers of JavaScript do.
class Columns {
 public:
  enum class Coding : bool { plain, delta };

  void add(std::string_view name, std::span<const std::int64_t> values, Coding coding = Coding::plain);

  /// Name, number of values, coding and place of each, in their order; for the page.
  const Json& index() const noexcept { return index_; }
  /// Errors: exhausted, io.
  base::Result<std::string> text() const;

 private:
  Json index_ = Json::array();
  std::string bytes_;
};

}  // namespace tandem::tools
