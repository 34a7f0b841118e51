// tandem/api/memory_contention.hpp: uses the model of the machine's memory contention in a running program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/model/contention/machine_file.hpp"
#include "tandem/runtime/sched/contention/memory_gate.hpp"
#include "tandem/runtime/sched/contention/memory_shares.hpp"

namespace tandem {

/// The file of this host that option `contention=auto` reads and `tandem contention fit --install` writes:
/// tandem/contention/HOST.toml in $XDG_CACHE_HOME or ~/.cache. Errors: not_found (neither is set).
base::Result<std::filesystem::path> contention_file(const base::Environment& environment);

/// Rule of `MemoryGate` for `all.cores` workers whose data, and that of messages, lies as `all` says; no limit if one
/// would not gain anything.
runtime::MemoryGateRule memory_gate_rule(const model::contention::Model& model, const model::contention::Load& all);

/// Tables for policies that look ahead: the rates of up to `all.cores` kernels, and of messages or copies of a device,
/// whose data lies as `all` says.
runtime::MemoryShares memory_shares(const model::contention::Model& model, const model::contention::Load& all);

/// Rule for so many CPU workers on a machine with these parameters, with data of tasks and messages on the NUMA node of
/// the workers. Workers beyond the cores of one socket are assumed to use another bus, and are not limited.
runtime::MemoryGateRule memory_gate_rule(const model::contention::StoredMachine& machine, unsigned workers);

/// Limits and tables of a program.
struct MemoryContention {
  runtime::MemoryGateRule gate = {};
  runtime::MemoryShares shares = {};
};
/// Parameters of a machine, and their source.
struct NamedMachine {
  std::string name;  ///< name of the file, or of the machine
  model::contention::StoredMachine stored;
};
/// Finds the machine of option `contention`. `processor`: this machine's, to recognise a file of another one. None if
/// the option is off, or auto without a usable file; the log says why one is not used. Throws StartError: the file or
/// machine that the option names is not available.
std::optional<NamedMachine> find_contention_machine(const base::Config& config, const base::Environment& environment,
                                                    const std::string& processor, base::Log& log);
/// Limits and tables for so many CPU workers that work in one memory of a machine; empty without a machine. Logs
/// limits.
MemoryContention memory_contention_on(const std::optional<NamedMachine>& machine, unsigned workers, base::Log& log);

}  // namespace tandem
