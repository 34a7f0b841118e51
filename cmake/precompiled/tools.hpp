// cmake/precompiled/tools.hpp: headers that most sources of the command include.
#pragma once

#include <charconv>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "cmake/precompiled/standard.hpp"
