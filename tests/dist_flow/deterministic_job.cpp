// tests/dist_flow/deterministic_job.cpp: the runtime of each rank.
#include "deterministic_job.hpp"

#include <exception>
#include <utility>

#include "tandem/api/test_support.hpp"
#include "tandem/api/world.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::dist_test {

/// The program of a rank, which throws what ends it.
void DeterministicJob::run_rank(std::uint32_t rank, const JobSetup& setup, const Program& program) {
  auto resources = test::test_resources();
  TestWorldOptions world_options;
  world_options.workers = setup.workers;
  world_options.sched = setup.sched;
  world_options.main_bytes = setup.main_bytes;
  world_options.devices = setup.devices;
  world_options.device_bytes = setup.device_bytes;
  world_options.device_messages = setup.device_messages;
  world_options.loop = &loop();
  if (setup.adjust) setup.adjust(rank, world_options);
  auto world = make_test_world(world_options, *resources);
  world.caller_works = setup.caller;
  world.driver = job_.make_driver(rank);
  auto endpoint = comm::Endpoint::open_loop(*network_, comm::Rank(rank), {}, *resources->log, &loop());
  runtime::CoreOptions core = setup.core;
  if (!setup.memories.empty()) core.modelled_memory = setup.memories[rank];
  Runtime rt(std::move(resources), std::move(world), core, std::move(endpoint), setup.flow);
  const struct Shown {
    Runtime*& where;
    ~Shown() { where = nullptr; }
  } shown{runtimes_[rank] = &rt};
  program(rt, *this);
}

DeterministicJob::Outcome DeterministicJob::run(const JobSetup& setup, const Program& program) {
  comm::LoopOptions network_options = setup.network;
  network_options.ranks = setup.ranks;
  network_ = std::make_unique<comm::LoopNetwork>(network_options, &loop());
  Outcome outcome;
  outcome.endings.resize(setup.ranks);
  runtimes_.assign(setup.ranks, nullptr);
  for (std::uint32_t rank = 0; rank < setup.ranks; ++rank)
    job_.add([this, &setup, &program, &outcome, rank] {
      try {
        run_rank(rank, setup, program);
      } catch (const std::exception& error) {
        outcome.endings[rank].error = error.what();
      }
    });
  outcome.stuck = !job_.run(sim::Job::Turns::drawn);
  if (!outcome.stuck) return outcome;
  for (const Ending& ending : outcome.endings) outcome.why += ending.error + "\n";
  for (Runtime* const runtime : runtimes_)
    if (runtime != nullptr)
      outcome.why += runtime->core().loop().explain_stuck() + runtime->flow()->endpoint().describe();
  return outcome;  // the caller ends the process: the programs wait for ever
}

Killer::Killer(Runtime& rt, DeterministicJob& job, std::int64_t after_ns) : target_(std::make_shared<Runtime*>(&rt)) {
  job.loop().at(job.loop().now_ns() + after_ns, [&job, target = target_] {
    if (*target == nullptr) return;
    job.network().kill(comm::Rank((*target)->rank()));
    (*target)->flow()->abort("killed");
    (*target)->flow()->endpoint().abandon();  // no rank receives its abort messages, and the sends would wait for that
  });
}

Killer::~Killer() { *target_ = nullptr; }

}  // namespace tandem::dist_test
