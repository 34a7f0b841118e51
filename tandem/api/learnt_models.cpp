// tandem/api/learnt_models.cpp: reads and writes the files of models for the workers.
#include "tandem/api/learnt_models.hpp"

#include <utility>

#include "tandem/api/world.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem {

std::unique_ptr<LearntModels> LearntModels::start(const base::Config& config,
                                                  const std::vector<runtime::WorkerSpec>& workers,
                                                  const Options& options, const WorldResources& resources) {
  std::optional<ModelFolder> folder;
  if (options.is_stored) {
    auto place = ModelFolder::place(config, base::process_environment());
    if (!place.ok()) throw StartError(place.error().message);
    // The path is absolute, since the program may change its folder until it ends.
    folder.emplace(std::filesystem::absolute(place.value()),
                   machine_name(resources.topology != nullptr ? resources.topology->cpu_model() : std::string()));
  }
  return std::make_unique<LearntModels>(std::move(folder), workers, *resources.log);
}

LearntModels::LearntModels(std::optional<ModelFolder> folder, const std::vector<runtime::WorkerSpec>& workers,
                           base::Log& log)
    : folder_(std::move(folder)), durations_(workers) {
  if (!folder_) return;
  if (auto powers = folder_->read_powers(); powers.ok()) powers_ = std::move(powers).value();
  else log.warn("powers of workers: {}", powers.error().message);
  const auto files = folder_->read_all();
  if (!files.ok()) {
    log.warn("performance models are not read: {}", files.error().message);
    return;
  }
  for (const ModelFolder::File& file : files.value()) {
    if (file.models.ok()) durations_.set(file.models.value());
    else log.warn("performance models: {}", file.models.error().message);
  }
}

model::PowerTable LearntModels::stored_powers(const base::Config& config, const WorldResources& resources) {
  const auto place = ModelFolder::place(config, base::process_environment());
  if (!place.ok()) return {};
  const ModelFolder folder(
      place.value(), machine_name(resources.topology != nullptr ? resources.topology->cpu_model() : std::string()));
  auto powers = folder.read_powers();
  if (powers.ok()) return std::move(powers).value();
  resources.log->warn("powers of workers: {}", powers.error().message);
  return {};
}

void LearntModels::save(const model::PowerTable& measured, base::Log& log) {
  if (!folder_) return;
  if (const auto saved = folder_->save_powers(measured); !saved.ok())
    log.warn("powers of workers are not saved: {}", saved.error().message);
  else
    for (const std::string& note : saved.value()) log.warn("powers of workers: {}", note);
  const auto saved = folder_->save(durations_.news());
  if (!saved.ok()) return log.warn("performance models are not saved: {}", saved.error().message);
  for (const std::string& note : saved.value()) log.warn("performance models: {}", note);
}

}  // namespace tandem
