// tandem/trace.hpp: a program's own trace, `rt.trace()`, for its users. Apart from tandem/tandem.hpp because it takes
// longer to compile.
#pragma once

#include "tandem/api/trace.hpp"
