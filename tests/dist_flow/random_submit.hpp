// tests/dist_flow/random_submit.hpp: an operation of a random flow becomes a task.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include "random_operation.hpp"
#include "tandem/tandem.hpp"

namespace tandem::dist_test {

/// The type of all data of a plan.
template <bool objects>
using Held = std::conditional_t<objects, Object<Values>, Vector<Word>>;
template <bool objects>
using AllData = std::vector<Data<Held<objects>>>;

/// Submits the task `operation`, which stands at `position` of its plan.
///
/// Each list of up to `kMostUses` access modes is an instantiation of `Runtime::submit`. Two files without optimisation
/// compile them.
template <bool objects>
void submit_task(Runtime& rt, const AllData<objects>& data, std::size_t position, const Operation& operation);

}  // namespace tandem::dist_test
