// tools/simulate/sweep.cpp: grids, their points on several threads, CSV and SVG.
#include "tools/simulate/sweep.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tandem/base/number_of.hpp"
#include "tools/number_list.hpp"
#include "tools/svg_text.hpp"

namespace tandem::tools {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::size_t most_points = most_of_range;

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

Error wrong(const std::string& part) {
  return {ErrorCode::invalid_argument,
          fmt::format("--sweep: {}: write NAME=VALUE,VALUE or NAME=FIRST:LAST:STEP in whole numbers", part)};
}

/// A value with a comma, a quote or a line end would need quotes.
bool is_plain(const std::string& value) { return value.find_first_of(",\"\n\r") == value.npos; }

std::string line_of(const SweepPoint& point, const Prediction& result) {
  return fmt::format("{},{:.9g},{:.9g},{:.9g}", fmt::join(point, ","), result.median, result.low, result.high);
}

std::string header_of(const std::vector<SweepAxis>& axes) {
  std::string header;
  for (const SweepAxis& axis : axes) header += axis.name + ",";
  return header + "seconds,low,high";
}

}  // namespace

Result<std::vector<SweepAxis>> parse_sweep(std::string_view text) {
  std::vector<SweepAxis> axes;
  std::size_t points = 1;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const std::size_t equal = word.find('=');
    if (equal == word.npos || equal == 0 || equal + 1 == word.size()) return wrong(word);
    SweepAxis axis{.name = word.substr(0, equal), .values = {}};
    const std::string values = word.substr(equal + 1);
    if (const auto numbers = range_of(values))
      for (const std::int64_t number : *numbers) axis.values.push_back(std::to_string(number));
    else
      axis.values = parts_of(values, ',');
    for (const std::string& value : axis.values)
      if (value.empty() || !is_plain(value)) return wrong(word);
    if (std::ranges::any_of(axes, [&](const SweepAxis& other) { return other.name == axis.name; }))
      return Error{ErrorCode::invalid_argument, fmt::format("--sweep: {} stands there twice", axis.name)};
    points *= std::min(axis.values.size(), most_points + 1);
    if (points > most_points)
      return Error{ErrorCode::invalid_argument, fmt::format("--sweep: more than {} points", most_points)};
    axes.push_back(std::move(axis));
  }
  if (axes.empty()) return wrong("(nothing)");
  return axes;
}

std::vector<SweepPoint> points_of(const std::vector<SweepAxis>& axes) {
  std::vector<SweepPoint> points = {{}};
  for (const SweepAxis& axis : axes) {
    std::vector<SweepPoint> longer;
    for (const SweepPoint& point : points)
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        longer.back().push_back(value);
      }
    points = std::move(longer);
  }
  return points;
}

std::vector<std::string> words_at(const SweepPoint& point, const std::vector<SweepAxis>& axes,
                                  const std::vector<std::string>& words, std::vector<std::size_t>& unused) {
  std::vector<std::string> found = words;
  unused.clear();
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const std::string placeholder = "{" + axes[axis].name + "}";
    bool is_used = false;
    for (std::string& word : found)
      for (std::size_t at = word.find(placeholder); at != word.npos;
           at = word.find(placeholder, at + point[axis].size())) {
        word.replace(at, placeholder.size(), point[axis]);
        is_used = true;
      }
    if (!is_used) unused.push_back(axis);
  }
  return found;
}

Result<SweepTable> SweepTable::open(const std::filesystem::path& file, const std::string& title,
                                    const std::vector<SweepAxis>& axes) {
  SweepTable table;
  table.file_ = file;
  const std::string first = "# " + title, second = header_of(axes);
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    std::ofstream out(file);
    out << first << "\n" << second << "\n" << std::flush;
    if (!out) return Error{ErrorCode::io, fmt::format("{}: cannot be written", file.string())};
    return table;
  }
  std::ifstream in(file);
  std::string line;
  std::vector<std::string> heads(2);
  for (std::string& head : heads) std::getline(in, head);
  if (!in || in.eof() || heads[0] != first || heads[1] != second)
    return Error{ErrorCode::malformed,
                 fmt::format("{} has the results of another sweep: choose another file with --csv, or remove it",
                             file.string())};
  auto whole = in.tellg();
  while (std::getline(in, line) && !in.eof()) {
    whole = in.tellg();
    std::vector<std::string> parts = parts_of(line, ',');
    if (parts.size() != axes.size() + 3) continue;
    Prediction result;
    const std::array<double*, 3> numbers{&result.median, &result.low, &result.high};
    bool is_whole = true;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto number = base::number_of<double>(parts[axes.size() + i]);
      is_whole = is_whole && number;
      *numbers[i] = number.value_or(0);
    }
    parts.resize(axes.size());
    if (is_whole) table.results_.emplace(std::move(parts), result);
  }
  // A line that was being written when the sweep was interrupted.
  std::filesystem::resize_file(file, static_cast<std::uintmax_t>(whole), error);
  if (error) return Error{ErrorCode::io, fmt::format("{}: {}", file.string(), error.message())};
  return table;
}

const Prediction* SweepTable::find(const SweepPoint& point) const {
  const auto found = results_.find(point);
  return found == results_.end() ? nullptr : &found->second;
}

Result<void> SweepTable::add(const SweepPoint& point, const Prediction& result) {
  std::ofstream out(file_, std::ios::app);
  out << line_of(point, result) << "\n" << std::flush;
  if (!out) return Error{ErrorCode::io, fmt::format("{}: cannot be written", file_.string())};
  results_.emplace(point, result);
  return {};
}

Result<void> sweep(const std::vector<SweepAxis>& axes, SweepTable& table, unsigned threads,
                   const std::function<Result<Prediction>(const SweepPoint&)>& simulate,
                   const std::function<void(std::size_t done, std::size_t all)>& progress) {
  std::vector<SweepPoint> points = points_of(axes);
  const std::size_t all = points.size();
  std::erase_if(points, [&](const SweepPoint& point) { return table.find(point) != nullptr; });
  std::mutex mutex;  // guards what follows, and the table
  std::size_t next = 0;
  std::optional<Error> refused;
  const auto work = [&] {
    std::unique_lock lock(mutex);
    while (next < points.size() && !refused) {
      const SweepPoint& point = points[next++];
      lock.unlock();
      const Result<Prediction> result = simulate(point);
      lock.lock();
      if (!result.ok()) {
        std::string where;
        for (std::size_t i = 0; i < axes.size(); ++i) where += fmt::format(" {}={}", axes[i].name, point[i]);
        if (!refused) refused = Error{result.error().code, fmt::format("at{}: {}", where, result.error().message)};
        break;
      }
      if (const auto added = table.add(point, result.value()); !added.ok() && !refused) refused = added.error();
      progress(table.results().size(), all);
    }
  };
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < threads; ++i) workers.emplace_back(work);
  workers.clear();
  if (refused) return *refused;
  return {};
}

namespace {

/// Coordinates of a picture whose values across are numbers, or stand side by side.
class SweepPicture {
 public:
  SweepPicture(const std::vector<SweepAxis>& axes, const std::map<SweepPoint, Prediction>& results) : axes_(axes) {
    const auto found = std::ranges::find_if(axes, [](const SweepAxis& axis) {
      return axis.values.size() > 1 && std::ranges::all_of(axis.values, [](const std::string& value) {
               return base::number_of<double>(value).has_value();
             });
    });
    has_numbers_ = found != axes.end();
    across_ = static_cast<std::size_t>(has_numbers_ ? found - axes.begin() : 0);
    for (const SweepPoint& point : points_of(axes)) {  // so that curves have the order of the sweep
      const auto known = results.find(point);
      if (known == results.end()) continue;
      const Prediction& result = known->second;
      std::string name;
      for (std::size_t i = 0; i < axes.size(); ++i)
        if (i != across_ && axes[i].values.size() > 1) name += fmt::format("{}={} ", axes[i].name, point[i]);
      const double x = number_at(point[across_]);
      auto curve = std::ranges::find(curves_, name, &NamedCurve::first);
      if (curve == curves_.end()) curve = curves_.insert(curve, {name, Curve()});
      curve->second.emplace(x, result);
      least_ = std::min(least_, x), greatest_ = std::max(greatest_, x);
      most_s_ = std::max(most_s_, result.high);
    }
    step_s_ = round_step(most_s_ / 4);
    most_s_ = std::ceil(most_s_ / step_s_) * step_s_;
  }

  std::string svg() const {
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height);
    svg += frame();
    std::size_t number = 0;
    for (const auto& [name, curve] : curves_) svg += curve_of(name, curve, number++);
    return svg + "</svg>\n";
  }

 private:
  static constexpr double width = 720, height = 480, left = 80, right = 160, top = 30, bottom = 50;
  using Curve = std::map<double, Prediction>;
  using NamedCurve = std::pair<std::string, Curve>;

  /// 1, 2 or 5 times a power of ten that is not below `least`.
  static double round_step(double least) {
    if (!(least > 0)) return 1;
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0})
      if (factor * power >= least) return factor * power;
    return 10 * power;
  }

  double number_at(const std::string& value) const {
    const std::vector<std::string>& values = axes_[across_].values;
    if (has_numbers_) return base::number_of<double>(value).value_or(0);
    return static_cast<double>(std::ranges::find(values, value) - values.begin());
  }
  double x_of(double x) const {
    return left + (width - left - right) * (greatest_ > least_ ? (x - least_) / (greatest_ - least_) : 0.5);
  }
  double y_of(double s) const { return height - bottom - (height - bottom - top) * (most_s_ > 0 ? s / most_s_ : 0); }

  std::string frame() const {
    const SweepAxis& across = axes_[across_];
    std::string svg = fmt::format(
        "<text x=\"{}\" y=\"18\">predicted time in s, and 90 % of runs</text>\n<text x=\"{}\" y=\"{}\" "
        "text-anchor=\"middle\">{}</text>\n",
        left, (left + width - right) / 2, height - 12, svg_text(across.name));
    for (int i = 0; i <= std::lround(most_s_ / step_s_); ++i) {
      const double s = step_s_ * i;
      svg += fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n", left, y_of(s),
                         width - right, y_of(s));
      svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g}</text>\n", left - 6, y_of(s) + 4, s);
    }
    for (const std::string& value : across.values)
      if (across.values.size() <= 12 || value == across.values.front() || value == across.values.back())
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x_of(number_at(value)),
                           height - bottom + 18, svg_text(value));
    return svg;
  }

  std::string curve_of(const std::string& name, const Curve& curve, std::size_t number) const {
    constexpr std::array<std::string_view, 6> colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
    const std::string_view colour = colours[number % colours.size()];
    std::string svg = fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", width - right + 10,
                                  top + 14 + 16 * static_cast<double>(number), colour, svg_text(name));
    svg += fmt::format("<polyline fill=\"none\" stroke=\"{}\" points=\"", colour);
    for (const auto& [x, result] : curve) svg += fmt::format("{:.1f},{:.1f} ", x_of(x), y_of(result.median));
    svg += "\"/>\n";
    for (const auto& [x, result] : curve)
      svg += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/><circle cx=\"{0:.1f}\" "
          "cy=\"{4:.1f}\" r=\"3\" fill=\"{3}\"/>\n",
          x_of(x), y_of(result.low), y_of(result.high), colour, y_of(result.median));
    return svg;
  }

  const std::vector<SweepAxis>& axes_;
  bool has_numbers_ = false;  ///< of the axis across
  std::size_t across_ = 0;
  std::vector<NamedCurve> curves_;
  double least_ = HUGE_VAL, greatest_ = -HUGE_VAL, most_s_ = 0, step_s_ = 1;
};

}  // namespace

std::string sweep_picture(const std::vector<SweepAxis>& axes, const std::map<SweepPoint, Prediction>& results) {
  return SweepPicture(axes, results).svg();
}

}  // namespace tandem::tools
