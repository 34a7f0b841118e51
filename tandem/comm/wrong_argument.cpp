// tandem/comm/wrong_argument.cpp: the messages of these errors.
#include "tandem/comm/wrong_argument.hpp"

#include <fmt/format.h>

#include "tandem/base/exceptions.hpp"
#include "tandem/comm/endpoint.hpp"

namespace tandem::comm::internal {

void throw_no_such_rank(std::string_view call, base::Rank rank, std::uint32_t size) {
  throw tandem::UsageError(
      size == 1 ? fmt::format("{}: there is no rank {}; this job has rank 0 alone", call, rank.value())
                : fmt::format("{}: there is no rank {}; this job has ranks 0 to {}", call, rank.value(), size - 1));
}

void throw_long_header(std::string_view call, std::size_t bytes) {
  throw tandem::UsageError(fmt::format("{}: a header has at most {} bytes, and this one has {}; send the rest as data",
                                       call, Endpoint::max_header_bytes, bytes));
}

void throw_to_itself(std::string_view call, base::Rank rank) {
  throw tandem::UsageError(fmt::format("{}: rank {} cannot send to itself in this way; use isend", call, rank.value()));
}

void throw_wrong_supply(std::uint64_t announced, std::uint64_t bytes) {
  if (announced != bytes)
    throw tandem::UsageError(fmt::format(
        "supply: the message was announced with {} bytes, and {} are given; give all of them", announced, bytes));
  throw tandem::UsageError(
      "supply: the message is not due, or has its bytes; give them once, after Callbacks::leaving");
}

void throw_not_placed() {
  throw tandem::UsageError(
      "irecv: a buffer beyond the host's memory takes a message that is here and that the network can write there; ask "
      "iprobe and probe "
      "(Peeked::placed) first");
}

void throw_too_many(std::string_view what, std::uint64_t count, std::uint64_t bytes) {
  throw tandem::UsageError(
      fmt::format("{} are {} times {} bytes, which is more than an address space has", what, count, bytes));
}

void throw_too_long(std::string_view what, std::uint64_t bytes, std::uint64_t more) {
  throw tandem::UsageError(
      fmt::format("{} are {} and {} bytes, which is more than an address space has", what, bytes, more));
}

void throw_second_handler(std::string_view channel) {
  throw tandem::UsageError(
      fmt::format("register_rpc: {} has a handler already; give each handler a channel of its own",
                  channel.empty() ? std::string("the default channel") : fmt::format("channel '{}'", channel)));
}

void throw_same_channel(std::string_view name, std::string_view other) {
  throw tandem::UsageError(fmt::format(
      "channel: the names '{}' and '{}' stand for the same channel (their hashes are equal); choose another name", name,
      other));
}

}  // namespace tandem::comm::internal
