// tandem/scheduling.hpp: what a program needs that brings a scheduling policy of its own (`Options::policies`).
#pragma once

#include "tandem/runtime/sched/policy.hpp"
