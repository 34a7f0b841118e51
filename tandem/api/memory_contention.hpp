// tandem/api/memory_contention.hpp: what a running program does with the model of its machine's memory contention.
#pragma once

#include <filesystem>
#include <string>

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/model/contention/machine_file.hpp"
#include "tandem/runtime/sched/memory_gate.hpp"
#include "tandem/runtime/sched/memory_shares.hpp"

namespace tandem {

/// The file of this host that option `contention=auto` reads and `tandem contention fit --install` writes: tandem/contention/HOST.toml in
/// $XDG_CACHE_HOME or ~/.cache. Errors: not_found (neither is set).
base::Result<std::filesystem::path> contention_file(const base::Environment& environment);

/// The rule of `MemoryGate` for `all.cores` workers whose data, and that of messages, lie as `all` says; no limit where one would not gain anything.
runtime::MemoryGateRule memory_gate_rule(const model::contention::Model& model, const model::contention::Load& all);

/// For policies that look ahead: what up to `all.cores` kernels, and messages or copies of a device, get whose data lies as `all` says.
runtime::MemoryShares memory_shares(const model::contention::Model& model, const model::contention::Load& all);

/// The same for so many CPU workers on a machine with these parameters, whose tasks' and messages' data lie on the NUMA node of the
/// workers. Workers beyond the cores of one socket are taken to use another bus: they are not limited.
runtime::MemoryGateRule memory_gate_rule(const model::contention::StoredMachine& machine, unsigned workers);

/// What a program knows.
struct MemoryContention {
  runtime::MemoryGateRule gate = {};
  runtime::MemoryShares shares = {};
};
/// By option `contention`, for so many CPU workers that work in one memory. `processor`: this machine's, to tell a file of another one. Nothing is known
/// where the option says off, or auto and there is no usable file; the log says why one is not used. Throws StartError: the file or machine that the
/// option names cannot be had.
MemoryContention find_memory_contention(const base::Config& config, const base::Environment& environment, unsigned workers, const std::string& processor,
                                        base::Log& log);

}  // namespace tandem
