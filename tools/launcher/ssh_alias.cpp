// tools/launcher/ssh_alias.cpp: asks ssh for the options that it would use, or Slurm for the address of a node.
#include "tools/launcher/ssh_alias.hpp"

#include <filesystem>
#include <sstream>

#include <fmt/core.h>

#include "tools/subprocess.hpp"

namespace tandem::tools {

using base::Error;
using base::ErrorCode;

namespace {

base::Result<std::string> address_of_node(const std::string& node) {
  const Command command{
      .file = "/usr/bin/env", .arguments = {"scontrol", "--oneliner", "show", "node", node}, .environment = {}};
  const auto shown = run_program(command, std::chrono::seconds(10));
  if (!shown) return shown.error();
  std::istringstream words(shown.value().output);
  for (std::string word; words >> word;)
    if (const std::string_view key = "NodeAddr="; word.starts_with(key)) return word.substr(key.size());
  return Error{ErrorCode::not_found, fmt::format("scontrol show node {} names no address", node)};
}

}  // namespace

base::Result<std::string> host_name_of(const std::vector<std::string>& ssh, const std::string& host) {
  if (!ssh.empty() && std::filesystem::path(ssh.front()).filename() == "srun") return address_of_node(host);
  if (ssh.empty() || std::filesystem::path(ssh.front()).filename() != "ssh")
    return Error{ErrorCode::unsupported, "only ssh itself says which host a name stands for"};
  Command command{.file = "/usr/bin/env", .arguments = ssh, .environment = {}};
  command.arguments.insert(command.arguments.end(), {"-G", host});
  const auto options = run_program(command, std::chrono::seconds(10));
  if (!options) return options.error();
  std::istringstream lines(options.value().output);
  for (std::string line; std::getline(lines, line);)
    if (const std::string_view key = "hostname "; line.starts_with(key)) return line.substr(key.size());
  return Error{ErrorCode::not_found, fmt::format("ssh -G {} names no host", host)};
}

}  // namespace tandem::tools
