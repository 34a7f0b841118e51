// tools/trace/check_books.hpp: checks that requests, copies, memory and bags of one rank balance.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "tools/trace/check_findings.hpp"

namespace tandem::tools {

/// Requests of a rank's endpoint: each posted one is released or fails, once, after its steps in between.
class RequestBook {
 public:
  RequestBook(const trace::RankTrace& rank, const Recorded& recorded);

  /// Adds an event of category comm or broadcast.
  void add(const trace::Event& event, Findings& findings);
  void finish(TraceCheck& result, Findings& findings) const;

 private:
  enum class Kind : std::uint8_t { send, receive, broadcast };
  struct Request {
    Kind kind = Kind::send;
    bool moved = false;     ///< sent, or arrived
    bool released = false;  ///< or failed; a small message is released before it is sent
  };
  void post(const trace::Event& event, Kind kind, Findings& findings);
  void step(const trace::Event& event, Findings& findings);
  std::string name(const trace::Event& event) const;

  const trace::RankTrace& rank_;
  const Recorded& recorded_;
  std::string gap_;
  std::unordered_map<std::uint32_t, Request> requests_;
  std::uint64_t posted_[3] = {}, moved_[3] = {}, released_[3] = {}, failed_[3] = {};  ///< by kind
};

/// The memory of a rank's nodes, the copies between them, and the bags of recipients.
class MemoryBook {
 public:
  MemoryBook(const trace::RankTrace& rank, const Recorded& recorded);

  /// Adds an event of category data or broadcast.
  void add(const trace::Event& event, Findings& findings);
  void finish(TraceCheck& result, Findings& findings) const;

 private:
  struct Amount {
    std::uint64_t count = 0, bytes = 0;
  };
  struct Bag {
    std::uint32_t opened = 0, closed = 0;  ///< how often
  };
  void add_memory(const trace::Event& event, Findings& findings);
  void add_transfer(const trace::Event& event, Findings& findings);
  void add_bag(const trace::Event& event);
  void check_bags(Findings& findings) const;

  const trace::RankTrace& rank_;
  const Recorded& recorded_;
  std::string memory_gap_, transfer_gap_, bag_gap_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Amount> alive_;                             ///< by data and node
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t> under_way_;  ///< by data, from, to
  std::unordered_map<std::uint32_t, Bag> bags_;                                                 ///< by number
  Amount allocated_, freed_;
  std::uint64_t transfers_started_ = 0, transfers_ended_ = 0, bags_opened_ = 0, bags_closed_ = 0;
};

}  // namespace tandem::tools
