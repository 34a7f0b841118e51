// tools/launcher/exec_words.cpp: texts for exec().
#include "tools/launcher/exec_words.hpp"

#include <unistd.h>

#include <map>

namespace tandem::tools {

std::vector<std::string> environment_with(std::span<const std::pair<std::string, std::string>> added) {
  std::map<std::string, std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : added) values[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : values) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace tandem::tools
