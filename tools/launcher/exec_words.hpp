// tools/launcher/exec_words.hpp: words and environment of a program for exec(), made before the fork, where one may
// allocate.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem::tools {

/// This process's environment as "NAME=value", sorted, with `added` in addition or instead of existing values.
std::vector<std::string> environment_with(std::span<const std::pair<std::string, std::string>> added);

/// Pointers to the texts, and a null behind them. Valid while `texts` lives unchanged.
std::vector<char*> pointers_to(std::vector<std::string>& texts);

}  // namespace tandem::tools
