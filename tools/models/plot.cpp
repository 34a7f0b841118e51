// tools/models/plot.cpp: `tandem models plot`: durations by bytes as a picture, without a library.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "tandem/analysis/tables/short_time.hpp"
#include "tools/counted.hpp"
#include "tools/models/command.hpp"
#include "tools/svg_text.hpp"

namespace tandem::tools {
namespace {

constexpr double kWidth = 720, kHeight = 480, kLeft = 80, kRight = 30, kTop = 40, kBottom = 50;
constexpr std::array<std::string_view, 6> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

/// A logarithmic axis, from a power of ten or of two to another.
struct Axis {
  double low, high, from, to;  ///< values, and their coordinates

  double operator()(double value) const { return from + (to - from) * std::log(value / low) / std::log(high / low); }
};

Axis axis_over(double least, double most, double base, double from, double to) {
  const auto power = [&](double value, auto round) {
    return std::pow(base, round(std::log(value) / std::log(base) * (1 + 1e-12)));
  };
  const double low = power(least, [](double x) { return std::floor(x); });
  const double high = std::max(power(most, [](double x) { return std::ceil(x); }), low * base);
  return {low, high, from, to};
}

}  // namespace

std::string picture_of(const model::CodeletModels& models) {
  const std::vector<ModelRow> rows = rows_of(models);
  double least_bytes = HUGE_VAL, most_bytes = 1, least_ns = HUGE_VAL, most_ns = 1;
  for (const ModelRow& row : rows) {
    const model::Estimate estimate = row.history.estimate();
    const double bytes = std::max(1.0, static_cast<double>(row.footprint.bytes));
    least_bytes = std::min(least_bytes, bytes);
    most_bytes = std::max(most_bytes, bytes);
    least_ns = std::min(least_ns, std::max(1.0, estimate.mean_ns - estimate.deviation_ns));
    most_ns = std::max(most_ns, estimate.mean_ns + estimate.deviation_ns);
  }
  const Axis x = axis_over(std::min(least_bytes, most_bytes), most_bytes, 4, kLeft, kWidth - kRight);
  const Axis y = axis_over(std::min(least_ns, most_ns), most_ns, 10, kHeight - kBottom, kTop);

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{}\" y=\"20\" font-size=\"14\">{}: duration by "
      "bytes of data</text>\n",
      kWidth, kHeight, kLeft, svg_text(models.codelet));
  const auto line = [&](double x1, double y1, double x2, double y2, std::string_view colour) {
    svg += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
                       y2, colour);
  };
  for (double bytes = x.low; bytes <= x.high * 1.001; bytes *= 4) {
    line(x(bytes), kTop, x(bytes), kHeight - kBottom, "#ddd");
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(bytes),
                       kHeight - kBottom + 18, short_bytes(bytes));
  }
  for (double ns = y.low; ns <= y.high * 1.001; ns *= 10) {
    line(kLeft, y(ns), kWidth - kRight, y(ns), "#ddd");
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 6, y(ns) + 4,
                       analysis::short_time(ns));
  }
  std::size_t number = 0;
  for (const auto& [kind, sizes] : models.kinds) {
    const std::string_view colour = kColours[number % kColours.size()];
    svg += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", kLeft + 10,
                       kTop + 16 + 15 * static_cast<double>(number), colour, svg_text(kind_text(kind)));
    ++number;
    for (const model::SizeModel::Entry& entry : sizes.entries()) {
      const model::Estimate estimate = entry.history.estimate();
      const double at = x(std::max(1.0, static_cast<double>(entry.footprint.bytes)));
      line(at, y(std::max(y.low, estimate.mean_ns - estimate.deviation_ns)), at,
           y(estimate.mean_ns + estimate.deviation_ns), colour);
      svg += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}, {}: {} +- {}</title></circle>\n", at,
          y(estimate.mean_ns), colour, svg_text(kind_text(kind)), short_bytes(entry.footprint.bytes),
          analysis::short_time(estimate.mean_ns), analysis::short_time(estimate.deviation_ns));
    }
    if (const auto law = sizes.law()) {
      svg += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-dasharray=\"4 3\" points=\"", colour);
      for (int i = 0; i <= 60; ++i) {
        const double bytes = x.low * std::pow(x.high / x.low, i / 60.0);
        svg += fmt::format("{:.1f},{:.1f} ", x(bytes), y(std::clamp(law->mean_ns(bytes), y.low, y.high)));
      }
      svg += "\"/>\n";
    }
  }
  return svg + "</svg>\n";
}

}  // namespace tandem::tools
