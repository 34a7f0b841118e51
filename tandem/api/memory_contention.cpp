// tandem/api/memory_contention.cpp: derives limits from a file, or a machine of the thesis.
#include "tandem/api/memory_contention.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tandem/api/model_folder.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/base/host.hpp"
#include "tandem/base/owned_file.hpp"
#include "tandem/model/contention/limit.hpp"
#include "tandem/model/contention/platforms.hpp"
#include "tandem/model/tasks/codelet_models.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using namespace model::contention;
using base::Error;
using base::ErrorCode;

constexpr std::size_t kMostFileBytes = std::size_t{16} << 20;  ///< limit for a file of `tandem contention fit`

base::Result<StoredMachine> machine_in(const fs::path& file) {
  const auto opened = base::OwnedFile::open(file, base::Owners::anyone);
  if (!opened.ok()) return Error{ErrorCode::io, opened.error().message};
  const auto text = opened.value().text(kMostFileBytes);
  if (!text.ok()) return text.error();
  return parse_machine(text.value(), file.string());
}

base::Result<StoredMachine> machine_called(const std::string& name) {
  if (fs::exists(name)) return machine_in(name);
  if (const Platform* const platform = find_platform(name))
    return StoredMachine{.machine = soften(platform->machine), .cores = platform->cores_per_socket};
  std::string known;
  for (const Platform& platform : platforms()) known += (known.empty() ? "" : ", ") + std::string(platform.name);
  return Error{ErrorCode::not_found, fmt::format("option contention: '{}' is neither auto nor off, nor a file of "
                                                 "`tandem contention fit --install`, nor one of the machines {}",
                                                 name, known)};
}

}  // namespace

base::Result<fs::path> contention_file(const base::Environment& environment) {
  if (const auto cache = tandem_cache(environment))
    return *cache / "contention" / (model::percent_encoded(base::host_name(), "-_.") + ".toml");
  return Error{ErrorCode::not_found, "there is no place for this machine's memory contention, since HOME is not set"};
}

runtime::MemoryGateRule memory_gate_rule(const Model& model, const Load& all) {
  const unsigned most = cores_that_fill_bus(model, all);
  Load filling = all;
  filling.cores = most;
  const unsigned beside = cores_beside_message(model, filling);
  if (beside == all.cores) return {};
  const Bandwidths shared = model.predict(all);
  return {.most = most,
          .most_beside_messages = beside,
          // Half of each core's share when all compete.
          .least_bytes_per_ns = shared.computation_mb_s * 1e-3 / all.cores / 2,
          .network_bytes_per_ns = beside < most ? shared.communication_alone_mb_s * 1e-3 : 0};
}

runtime::MemoryShares memory_shares(const Model& model, const Load& all) {
  Load load = all;
  load.cores = 1;
  const Bandwidths one = model.predict(load);
  runtime::MemoryShares shares{.core_bytes_per_ns = one.computation_alone_mb_s * 1e-3,
                               .stream_bytes_per_ns = one.communication_alone_mb_s * 1e-3,
                               .of_cores = {1},
                               .beside_messages = {1},
                               .of_streams = {1}};
  const double each_mb_s = one.computation_alone_mb_s;
  // Models may leave nothing, but every task must end.
  const auto share = [](double part) { return std::clamp(part, 0.01, 1.0); };
  for (load.cores = 1; load.cores <= all.cores; ++load.cores) {
    const Bandwidths shared = model.predict(load);
    shares.of_cores.push_back(share(shared.computation_alone_mb_s / (each_mb_s * load.cores)));
    shares.beside_messages.push_back(share(shared.computation_mb_s / (each_mb_s * load.cores)));
    shares.of_streams.push_back(share(shared.communication_mb_s / shared.communication_alone_mb_s));
  }
  return shares;
}

namespace {

/// Rule for workers; those beyond the model's `cores` are not limited.
runtime::MemoryGateRule rule_for(const Model& model, unsigned cores, unsigned workers) {
  runtime::MemoryGateRule rule = memory_gate_rule(model, {.cores = cores});
  if (!rule.limits(cores)) return rule;
  rule.most += workers - cores;
  rule.most_beside_messages += workers - cores;
  return rule;
}

}  // namespace

runtime::MemoryGateRule memory_gate_rule(const StoredMachine& stored, unsigned workers) {
  return rule_for(SoftModel::create(stored.machine).value(), std::min(workers, stored.cores), workers);
}

std::optional<NamedMachine> find_contention_machine(const base::Config& config, const base::Environment& environment,
                                                    const std::string& processor, base::Log& log) {
  const std::string& chosen = config.get_string("contention");
  if (chosen == "off" || chosen.empty()) return std::nullopt;
  std::string name = chosen;
  if (chosen == "auto") {
    const auto file = contention_file(environment);
    if (!file.ok() || !fs::exists(file.value())) return std::nullopt;
    name = file.value().string();
  }
  const auto stored = machine_called(name);
  if (chosen != "auto" && !stored.ok()) throw StartError(stored.error().message);
  if (!stored.ok())
    return log.warn("memory contention is left out of account: {}", stored.error().message), std::nullopt;
  if (chosen == "auto" && stored.value().processor != processor) {
    log.warn("memory contention is left out of account: {} was measured on '{}', and this is '{}'", name,
             stored.value().processor, processor);
    return std::nullopt;
  }
  return NamedMachine{name, stored.value()};
}

MemoryContention memory_contention_on(const std::optional<NamedMachine>& machine, unsigned workers, base::Log& log) {
  if (!machine) return {};
  const unsigned cores = std::min(workers, machine->stored.cores);
  const SoftModel model = SoftModel::create(machine->stored.machine).value();
  const runtime::MemoryGateRule rule = rule_for(model, cores, workers);
  if (rule.limits(workers))
    log.info(
        "memory contention ({}): at most {} of {} workers run memory-bound tasks, and {} while an urgent message is "
        "under way",
        machine->name, rule.most, workers, rule.most_beside_messages);
  return {rule, memory_shares(model, {.cores = cores})};
}

}  // namespace tandem
