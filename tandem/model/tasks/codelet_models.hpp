// tandem/model/tasks/codelet_models.hpp: the models of one codelet, and their text for files.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tandem/model/tasks/size_model.hpp"

namespace tandem::model {

/// What a codelet runs on.
struct WorkKind {
  std::string worker = "cpu";        ///< "cpu", or the name of a device without its number
  std::uint32_t implementation = 0;  ///< its place among the codelet's
  std::uint32_t distance = 0;        ///< between the worker and its data, in NUMA distance; 0: near, or not known

  std::strong_ordering operator<=>(const WorkKind&) const = default;
};

/// All that is known of one codelet. A value; not thread-safe.
struct CodeletModels {
  std::string codelet;
  std::map<WorkKind, SizeModel> kinds;

  /// Adds what `other`, of the same codelet, has learnt since `forget_news`.
  void add_news_of(const CodeletModels& other);
};

/// The text of a file: TOML that people read, with one row for each kind and shape.
///
///   format = 1
///   machine = "AMD EPYC 7763"
///   codelet = "gemm"
///   rows = 1
///   [durations]
///   "cpu/0/0/6291456/5d1e0a4b" = "120 durations: 10.13 10.33 10.4 10.5 14.2"
///
/// A row is WORKER/IMPLEMENTATION/DISTANCE/BYTES/SHAPE and the least duration, the quartiles and the greatest one of
/// the last accepted, in us; "suspects: 99.5" may follow, durations that are not accepted yet. SHAPE, a hash, is
/// missing where the bytes stand for it. Names are percent-encoded where they would confuse TOML, or a reader.
std::string to_text(const CodeletModels& models, std::string_view machine);

/// Reads such a text. `machine` is the one that this program runs on; empty: any. `file` stands for the file in
/// messages. Errors: malformed (damaged, truncated, impossible values), unsupported (of another machine, or of another
/// format).
base::Result<CodeletModels> parse_models(std::string_view text, std::string_view file, std::string_view machine);

/// `name` with %XX for all bytes but letters, digits and those of `also`.
std::string percent_encoded(std::string_view name, std::string_view also);
/// The inverse of `percent_encoded`. Invalid codes stay unchanged.
std::string percent_decoded(std::string_view text);

}  // namespace tandem::model
