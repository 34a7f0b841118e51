// tandem/api/memory_contention.hpp: what a running program does with the model of its machine's memory contention.
#pragma once

#include <filesystem>
#include <optional>
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
/// A machine's parameters, and where they come from.
struct NamedMachine {
  std::string name;  ///< of the file, or of the machine
  model::contention::StoredMachine stored;
};
/// By option `contention`. `processor`: this machine's, to tell a file of another one. None where the option says off, or auto and there is no usable file;
/// the log says why one is not used. Throws StartError: the file or machine that the option names cannot be had.
std::optional<NamedMachine> find_contention_machine(const base::Config& config, const base::Environment& environment, const std::string& processor,
                                                    base::Log& log);
/// What a program with so many CPU workers that work in one memory knows of a machine; nothing of none. Logs limits.
MemoryContention memory_contention_on(const std::optional<NamedMachine>& machine, unsigned workers, base::Log& log);

}  // namespace tandem
