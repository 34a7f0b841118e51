// tandem/tandem.hpp: the runtime, for its users.
#pragma once

#include "tandem/base/compiler.hpp"

#include "tandem/api/codelet.hpp"
#include "tandem/api/data.hpp"
#include "tandem/api/for_tasks_of.hpp"
#include "tandem/api/runtime.hpp"
