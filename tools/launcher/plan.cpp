// tools/launcher/plan.cpp: host lists, and dealing ranks to them.
#include "tools/launcher/plan.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

#include <fmt/core.h>

#include "tandem/base/host.hpp"
#include "tools/counted.hpp"

namespace tandem::tools {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::uint32_t most_ranks = 1'000'000;
constexpr std::string_view blanks = " \t\r";

Error bad_host(std::string_view text) {
  return {
      ErrorCode::invalid_argument,
      fmt::format("'{}' is no host: write NAME or NAME:RANKS, with a number of ranks from 1 to {}", text, most_ranks)};
}

Result<std::uint32_t> parse_count(std::string_view text, std::string_view whole) {
  std::uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count == 0 || count > most_ranks)
    return bad_host(whole);
  return count;
}

/// Parses "a", "a:2", "fe80::1" (several colons and no brackets: an address without a number), "[fe80::1]:2".
Result<HostShare> parse_host(std::string_view text) {
  HostShare share;
  auto colon = text.rfind(':');
  const auto bracket = text.rfind(']');
  if (colon != std::string_view::npos && bracket != std::string_view::npos && colon < bracket)
    colon = std::string_view::npos;
  if (colon != std::string_view::npos && bracket == std::string_view::npos && text.find(':') != colon)
    colon = std::string_view::npos;
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  // A name with a leading dash would be an option of ssh.
  if (host.empty() || host.front() == '-' || host.find_first_of(" \t,[]'\"\\;|&$<>`") != std::string_view::npos)
    return bad_host(text);
  share.host = host;
  if (colon == std::string_view::npos) return share;
  const auto count = parse_count(text.substr(colon + 1), text);
  if (!count) return count.error();
  share.ranks = count.value();
  return share;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

/// Parses "name", "name:2", "name slots=2".
Result<HostShare> parse_line(std::string_view line) {
  const auto gap = line.find_first_of(blanks);
  if (gap == std::string_view::npos) return parse_host(line);
  constexpr std::string_view slots = "slots=";
  const std::string_view rest = trimmed(line.substr(gap));
  auto share = parse_host(line.substr(0, gap));
  if (!share) return share;
  if (share.value().ranks || !rest.starts_with(slots)) return bad_host(line);
  const auto count = parse_count(rest.substr(slots.size()), line);
  if (!count) return count.error();
  share.value().ranks = count.value();
  return share;
}

}  // namespace

Result<std::vector<HostShare>> parse_hosts(std::string_view text) {
  std::vector<HostShare> hosts;
  for (;;) {
    const auto comma = text.find(',');
    auto share = parse_host(trimmed(text.substr(0, comma)));
    if (!share) return share.error();
    hosts.push_back(std::move(share).value());
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

Result<std::vector<HostShare>> read_hostfile(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream)
    return Error{ErrorCode::not_found,
                 fmt::format("the host file {} cannot be read: {}", file.string(), std::strerror(errno))};
  std::vector<HostShare> hosts;
  std::string line;
  for (unsigned number = 1; std::getline(stream, line); ++number) {
    const std::string_view content = trimmed(std::string_view(line).substr(0, line.find('#')));
    if (content.empty()) continue;
    auto share = parse_line(content);
    if (!share)
      return Error{ErrorCode::malformed, fmt::format("{}:{}: {}", file.string(), number, share.error().message)};
    hosts.push_back(std::move(share).value());
  }
  if (stream.bad()) return Error{ErrorCode::io, fmt::format("the host file {} cannot be read", file.string())};
  if (hosts.empty()) return Error{ErrorCode::malformed, fmt::format("the host file {} names no host", file.string())};
  return hosts;
}

Result<std::vector<HostRanks>> place_ranks(std::optional<std::uint32_t> ranks, const std::vector<HostShare>& hosts) {
  std::uint64_t stated = 0;
  std::uint32_t open_hosts = 0;
  for (const HostShare& share : hosts) share.ranks ? stated += *share.ranks : open_hosts += 1;
  const std::uint64_t wanted = ranks ? *ranks : stated + open_hosts;
  if (wanted == 0 || wanted > most_ranks) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} ranks cannot be started: give -n a number from 1 to {}", wanted, most_ranks)};
  }
  if (wanted > stated && open_hosts == 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the hosts take {}, not {}: give one of them more, or name it without a number",
                             counted(stated, "rank"), wanted)};
  }
  std::uint64_t for_open = wanted > stated ? wanted - stated : 0, for_stated = wanted - for_open;
  std::vector<HostRanks> placed;
  std::uint32_t next = 0;
  for (const HostShare& share : hosts) {
    std::uint64_t count;
    if (share.ranks) {
      count = std::min<std::uint64_t>(*share.ranks, for_stated);
      for_stated -= count;
    } else {
      count = (for_open + open_hosts - 1) / open_hosts;
      for_open -= count;
      --open_hosts;
    }
    if (count == 0) continue;
    placed.push_back({share.host, next, static_cast<std::uint32_t>(count)});
    next += static_cast<std::uint32_t>(count);
  }
  return placed;
}

bool is_this_host(const std::string& host) {
  return host.empty() || host == "localhost" || host == "127.0.0.1" || host == "::1" || host == base::host_name();
}

}  // namespace tandem::tools
