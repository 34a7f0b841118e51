// tandem/comm/bootstrap/variables.cpp: numbers in environment variables, and what is said about bad ones.
#include "tandem/comm/bootstrap/variables.hpp"

#include <charconv>

#include <fmt/core.h>

namespace tandem::comm {

using base::Error;
using base::ErrorCode;
using base::Result;

std::vector<std::string> job_variables() {
  return {"TANDEM_JOB_RANK",        "TANDEM_JOB_SIZE",        "TANDEM_JOB_LOCAL_RANK", "TANDEM_JOB_LOCAL_SIZE",
          "TANDEM_JOB_LOCAL_RANKS", "TANDEM_JOB_ID",          "TANDEM_JOB_SERVER",     "TANDEM_JOB_SECRET",
          "TANDEM_JOB_SECRET_FD",   "TANDEM_JOB_SECRET_FILE", "TANDEM_MASTER_PORT",    "TANDEM_RUN_SSH"};
}

namespace internal {

const std::string* Variables::find(std::string_view name) const {
  for (const auto& [variable, value] : environment_)
    if (variable == name) return value.empty() ? nullptr : &value;
  return nullptr;
}

Result<std::string> Variables::text(std::string_view name) const {
  if (const std::string* value = find(name)) return *value;
  return Error{ErrorCode::not_found, fmt::format("the environment variable {} is missing", name)};
}

Result<std::uint32_t> Variables::number(std::string_view name) const {
  const auto value = text(name);
  if (!value) return value.error();
  std::uint32_t number = 0;
  const char* const end = value.value().data() + value.value().size();
  const auto [read, error] = std::from_chars(value.value().data(), end, number);
  if (error != std::errc() || read != end) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the environment variable {} is '{}', which is no number from 0 on", name, value.value())};
  }
  return number;
}

Result<Variables::Place> Variables::place(std::string_view rank_name, std::string_view size_name) const {
  const auto rank = number(rank_name);
  if (!rank) return rank.error();
  const auto size = number(size_name);
  if (!size) return size.error();
  if (rank.value() >= size.value()) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("the environment variables say {}={} and {}={}, but a rank is less than the number of ranks",
                    rank_name, rank.value(), size_name, size.value())};
  }
  return Place{rank.value(), size.value()};
}

}  // namespace internal
}  // namespace tandem::comm
