// tandem/model/contention/machine_file.hpp: a machine's parameters of memory contention, as text.
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tandem/model/contention/soft_model.hpp"

namespace tandem::model::contention {

/// A parameter of a bus that is a bandwidth or a share, its name in files, and its range.
struct ParameterName {
  const char* name;
  double ThresholdParameters::*value;
  double least = 0, most = std::numeric_limits<double>::max();
};
inline constexpr ParameterName parameter_names[] = {
    {"t_par_max_mb_s", &ThresholdParameters::t_par_max_mb_s},
    {"t_seq_max_mb_s", &ThresholdParameters::t_seq_max_mb_s},
    {"t_par_max2_mb_s", &ThresholdParameters::t_par_max2_mb_s},
    {"alpha", &ThresholdParameters::alpha, 0, 1},
    {"delta_l_mb_s", &ThresholdParameters::delta_l_mb_s, std::numeric_limits<double>::lowest()},
    {"delta_r_mb_s", &ThresholdParameters::delta_r_mb_s, std::numeric_limits<double>::lowest()},
    {"b_comp_seq_mb_s", &ThresholdParameters::b_comp_seq_mb_s},
    {"b_comm_seq_mb_s", &ThresholdParameters::b_comm_seq_mb_s}};
/// By `Relation`.
inline constexpr const char* relation_names[relation_count] = {"local_other", "local_remote", "remote_local",
                                                               "remote_other"};

/// A machine's parameters, and where they were measured.
struct StoredMachine {
  SoftMachine machine;
  unsigned cores = 0;         ///< of the socket with which they were measured
  std::string processor = {};  ///< the processor's own name
};

/// The parameters as TOML, which `parse_machine` reads.
std::string to_text(const StoredMachine& stored);

/// Reads parameters. `file` stands for the file in messages. Errors: malformed, with the name that is missing, unknown
/// or wrong and a remedy; unsupported (another format).
base::Result<StoredMachine> parse_machine(std::string_view text, std::string_view file);

}  // namespace tandem::model::contention
