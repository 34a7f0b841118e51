// tandem/linalg/distribution.cpp: patterns of owners.
#include "tandem/linalg/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::linalg {

using base::Error;
using base::ErrorCode;

Distribution::Distribution(std::size_t rows, std::size_t cols, std::vector<std::uint32_t> pattern)
    : rows_(rows), cols_(cols), ranks_(*std::max_element(pattern.begin(), pattern.end()) + 1) {
  pattern_ = std::make_shared<const std::vector<std::uint32_t>>(std::move(pattern));
}

Distribution Distribution::block_cyclic(Grid grid) {
  TANDEM_ASSERT(grid.p > 0 && grid.q > 0);
  std::vector<std::uint32_t> pattern;
  for (std::uint32_t rank = 0; rank < grid.p * grid.q; ++rank) pattern.push_back(rank);
  return {grid.p, grid.q, std::move(pattern)};
}

Distribution Distribution::block_cyclic_by_columns(Grid grid) {
  TANDEM_ASSERT(grid.p > 0 && grid.q > 0);
  std::vector<std::uint32_t> pattern;
  for (std::uint32_t i = 0; i < grid.p; ++i)
    for (std::uint32_t j = 0; j < grid.q; ++j) pattern.push_back(i + j * grid.p);
  return {grid.p, grid.q, std::move(pattern)};
}

Distribution::Grid Distribution::squarest(std::uint32_t ranks) {
  auto p = static_cast<std::uint32_t>(std::sqrt(static_cast<double>(ranks)));
  while (p > 1 && ranks % p != 0) --p;
  return {std::max(p, 1U), ranks / std::max(p, 1U)};
}

Distribution Distribution::contiguous(Grid grid, Tiles tiles) {
  TANDEM_ASSERT(grid.p > 0 && grid.q > 0 && tiles.rows > 0 && tiles.cols > 0);
  std::vector<std::uint32_t> pattern;
  for (std::size_t i = 0; i < tiles.rows; ++i)
    for (std::size_t j = 0; j < tiles.cols; ++j)
      pattern.push_back(static_cast<std::uint32_t>(i * grid.p / tiles.rows * grid.q + j * grid.q / tiles.cols));
  return {tiles.rows, tiles.cols, std::move(pattern)};
}

Distribution Distribution::columns_by_speed(const std::vector<double>& speeds, std::size_t columns, std::uint32_t p) {
  TANDEM_ASSERT(p > 0 && !speeds.empty() && speeds.size() % p == 0);
  std::vector<double> slowest;  // of each group
  for (auto first = speeds.begin(); first != speeds.end(); first += p)
    slowest.push_back(*std::min_element(first, first + p));
  TANDEM_ASSERT(std::ranges::all_of(slowest, [](double speed) { return speed > 0; }));
  std::vector<double> given(slowest.size(), 0);
  std::vector<std::size_t> group_of;
  while (group_of.size() < std::max<std::size_t>(columns, 1)) {
    std::size_t next = 0;
    for (std::size_t group = 1; group < slowest.size(); ++group)
      if ((given[group] + 1) / slowest[group] < (given[next] + 1) / slowest[next]) next = group;
    given[next] += 1;
    group_of.push_back(next);
  }
  std::vector<std::uint32_t> pattern;
  for (std::uint32_t row = 0; row < p; ++row)
    for (const std::size_t group : group_of) pattern.push_back(static_cast<std::uint32_t>(group) * p + row);
  const std::size_t count = group_of.size();
  return {p, count, std::move(pattern)};
}

base::Result<Distribution> Distribution::parse(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::vector<std::uint32_t> pattern;
  std::size_t rows = 0, cols = 0, number = 0;
  while (std::getline(lines, line)) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string word;
    std::size_t count = 0;
    while (words >> word) {
      if (word.find_first_not_of("0123456789") != std::string::npos || word.size() > 9)
        return Error{ErrorCode::malformed,
                     fmt::format("line {}: '{}' is no rank; give one number per tile", number, word)};
      pattern.push_back(static_cast<std::uint32_t>(std::stoul(word)));
      ++count;
    }
    if (count == 0) continue;
    if (rows++ == 0) cols = count;
    if (count != cols)
      return Error{ErrorCode::malformed,
                   fmt::format("line {} has {} ranks, but the first row has {}", number, count, cols)};
  }
  if (rows == 0) return Error{ErrorCode::malformed, "there is no rank in it; give one line of ranks per tile row"};
  return Distribution(rows, cols, std::move(pattern));
}

base::Result<Distribution> Distribution::from_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error{ErrorCode::not_found, fmt::format("cannot open the distribution '{}'", path)};
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return Error{ErrorCode::io, fmt::format("cannot read the distribution '{}'", path)};
  auto parsed = parse(text.str());
  if (!parsed.ok()) return Error{parsed.error().code, fmt::format("{}: {}", path, parsed.error().message)};
  return parsed;
}

}  // namespace tandem::linalg
