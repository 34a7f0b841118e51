// tandem/dist/standstill.cpp: sends sketches to the ranks that owe data, and compares received ones.
#include "tandem/dist/standstill.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "tandem/dist/agreement.hpp"
#include "tandem/dist/data_table.hpp"
#include "tandem/dist/flat_bytes.hpp"
#include "tandem/dist/transfers.hpp"

namespace tandem::dist {

Standstill::Standstill(comm::Endpoint& endpoint, Transfers& transfers, const DataTable& table,
                       std::function<FlowSketch()> of_this_rank)
    : endpoint_(endpoint),
      transfers_(transfers),
      table_(table),
      sketch_(std::move(of_this_rank)),
      channel_(endpoint.channel("tandem.dist.standstill")) {
  endpoint_.register_rpc(channel_, {.arrived = [](const comm::RpcArrival&) { return comm::RpcAnswer{}; },
                                    .done = [this](const comm::Status& status) {
                                      if (status.ending != comm::Ending::done) return;
                                      FlatReader reader(status.owned);
                                      FlowSketch sketch = FlowSketch::from(reader);
                                      sketch.rank = status.source.value();
                                      const std::lock_guard guard(mutex_);
                                      arrived_.insert_or_assign(status.source.value(), std::move(sketch));
                                    }});
}

void Standstill::look() {
  const auto owes = transfers_.expected();
  {
    const std::lock_guard guard(mutex_);
    if (owes.empty() && arrived_.empty()) return;
  }
  FlowSketch mine = sketch_();
  if (mine.digests.empty()) return;
  mine.rank = endpoint_.rank().value();
  compare(mine);
  ask(mine);
}

void Standstill::ask(const FlowSketch& mine) {
  std::shared_ptr<std::vector<std::byte>> bytes;
  for (const Transfers::Expected& expected : transfers_.expected()) {
    auto& asked = asked_[expected.source];
    const std::pair here(mine.start, mine.position);
    if (std::exchange(asked, here) == here) continue;
    if (bytes == nullptr) {
      FlatWriter writer;
      mine.write(writer);
      bytes = std::make_shared<std::vector<std::byte>>(writer.take());
    }
    const auto drop = [bytes](const comm::Status&) {};
    endpoint_.isend(
        comm::Rank(expected.source), comm::Tag(0), comm::SendBuffer(bytes->data(), bytes->size()),
        {.channel = channel_, .priority = Agreement::kPriority, .callbacks = {.released = drop, .failed = drop}});
  }
}

void Standstill::compare(const FlowSketch& mine) {
  FlowDifference found;
  {
    const std::lock_guard guard(mutex_);
    std::erase_if(arrived_, [&](const auto& from) {
      const FlowSketch& other = from.second;
      if (other.start > mine.start) return false;  // this rank will leave the wait that the other one has left
      if (!found.exists())
        found = other.rank < mine.rank ? first_difference(other, mine) : first_difference(mine, other);
      return other.start < mine.start || other.position <= mine.position;
    });
  }
  if (!found.exists()) return;
  const auto name = [this](std::uint32_t id) {
    const runtime::Handle* const handle = table_.handle(id);
    return handle != nullptr ? handle->described() : fmt::format("data number {} (dropped since)", id);
  };
  transfers_.abort(
      fmt::format("ranks go through different flows: {}; all ranks must submit the same tasks in the same order",
                  found.described(name)));
}

}  // namespace tandem::dist
