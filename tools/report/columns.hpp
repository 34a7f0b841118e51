// tools/report/columns.hpp: compact tables of integers, for a page with millions of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tools/json/json.hpp"

namespace tandem::tools {

/// Consecutive columns of integers that the page's `columns.js` reads.
///
/// Format. A value, or its difference from the previous one (`delta`), is mapped to 0, 1, 2, ... for 0, -1, 1, ... and
/// written seven bits at a time, the lowest first; the highest bit of a byte says that another one follows. All columns
/// together are compressed by gzip and written in base64. Values must lie within 2^52, as numbers of JavaScript do.
class Columns {
 public:
  enum class Coding : bool { plain, delta };

  void add(std::string_view name, std::span<const std::int64_t> values, Coding coding = Coding::plain);

  /// Describes the columns for the page, in order: name, number of values, coding and place of each.
  const Json& index() const noexcept { return index_; }
  /// The compressed columns. Errors: exhausted, io.
  base::Result<std::string> text() const;

 private:
  Json index_ = Json::array();
  std::string bytes_;
};

}  // namespace tandem::tools
