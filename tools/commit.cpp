// tools/commit.cpp: the command is made from the sources of its library.
#include "tandem/api/commit.hpp"
#include "tools/version.hpp"

namespace tandem::tools {

const char* const commit = build_commit();

}  // namespace tandem::tools
