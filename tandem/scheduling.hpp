// tandem/scheduling.hpp: what a program needs that brings a scheduling policy of its own (`Options::policies`).
#pragma once

#include "tandem/runtime/sched/policies/placing_policy.hpp"
#include "tandem/runtime/sched/policies/pulling_policy.hpp"
#include "tandem/runtime/sched/policy.hpp"

namespace tandem {

using runtime::AccessView;
using runtime::Estimate;
using runtime::Estimates;
using runtime::KindTimes;
using runtime::KindWorkers;
using runtime::LinkLoad;
using runtime::LoadView;
using runtime::Machine;
using runtime::MostUrgentFirst;
using runtime::OpenTask;
using runtime::PlacingPolicy;
using runtime::Policy;
using runtime::PolicyRegistry;
using runtime::PullingPolicy;
using runtime::ReadyKind;
using runtime::ReadyTask;
using runtime::ReadyView;
using runtime::Situation;
using runtime::TaskView;
using runtime::Transfers;
using runtime::WorkerLoad;

}  // namespace tandem
