// tandem/dist/agree.cpp: what all ranks of a flow settle together: the budget, that their flows are one, how it ended.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "tandem/dist/flow.hpp"

namespace tandem::dist {

using runtime::Handle;

namespace {

using Bytes = Agreement::Bytes;

/// Numbers and texts, one after the other.
class Writer {
 public:
  Writer& number(std::uint64_t value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof value);
    return *this;
  }
  Writer& text(std::string_view value) {
    number(value.size());
    const auto* from = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), from, from + value.size());
    return *this;
  }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// What is missing reads as 0 or nothing: a peer that talks nonsense crashes nobody.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    if (bytes_.size() < sizeof value) return 0;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  std::string text() {
    const std::size_t size = std::min<std::size_t>(number(), bytes_.size());
    std::string value(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }
  bool more() const noexcept { return !bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

/// What a rank begins with: of several the least memory.
struct StartReport {
  std::uint64_t copy_bytes = 0;
  std::uint64_t traced = 0;  ///< all of them are

  Bytes bytes() const {
    Writer writer;
    return writer.number(copy_bytes).number(traced).take();
  }
  static StartReport from(std::span<const std::byte> bytes) {
    Reader reader(bytes);
    StartReport report;
    for (std::uint64_t* number : {&report.copy_bytes, &report.traced}) *number = reader.number();
    return report;
  }
  static void merge(Bytes& into, std::span<const std::byte> from) {
    StartReport a = StartReport::from(into);
    const StartReport b = StartReport::from(from);
    a.copy_bytes = std::min(a.copy_bytes, b.copy_bytes);
    a.traced &= b.traced;
    into = a.bytes();
  }
};

/// How far a rank's flow has come, and by which tasks; once two ranks differ, what they say of each other. Tasks are compared
/// among ranks that have submitted all.
struct FlowReport {
  std::uint64_t rank = 0;
  std::uint64_t positions = 0;    ///< of the program's operations
  std::uint64_t end = 0;          ///< the last one of the flow's own that follow; of several ranks the greatest
  std::uint64_t data = 0;
  std::uint64_t data_digest = 0;
  std::uint64_t digest = 0;
  std::uint64_t pruned = 0;       ///< some rank has passed over tasks
  std::string difference;

  Bytes bytes() const {
    Writer writer;
    for (const std::uint64_t number : {rank, positions, end, data, data_digest, digest, pruned}) writer.number(number);
    return writer.text(difference).take();
  }
  static FlowReport from(std::span<const std::byte> bytes) {
    Reader reader(bytes);
    FlowReport report;
    for (std::uint64_t* number : {&report.rank, &report.positions, &report.end, &report.data, &report.data_digest, &report.digest,
                                  &report.pruned})
      *number = reader.number();
    report.difference = reader.text();
    return report;
  }
  static void merge(Bytes& into, std::span<const std::byte> from) {
    FlowReport a = FlowReport::from(into);
    FlowReport b = FlowReport::from(from);
    if (b.rank < a.rank) std::swap(a, b);
    if (a.difference.empty()) a.difference = b.difference;
    const bool comparable = a.pruned == 0 && b.pruned == 0;
    if (a.difference.empty()) {
      if (a.data != b.data)
        a.difference = fmt::format("rank {} has registered {} data, rank {} has registered {}", a.rank, a.data, b.rank, b.data);
      else if (a.positions != b.positions)
        a.difference = fmt::format("rank {} has submitted {} operations, rank {} has submitted {}{}", a.rank, a.positions, b.rank,
                                   b.positions, comparable ? "" : ", with those that were passed over");
      else if (a.data_digest != b.data_digest)
        a.difference = fmt::format("ranks {} and {} have registered as many data, but not the same", a.rank, b.rank);
      else if (comparable && a.digest != b.digest)
        a.difference = fmt::format("ranks {} and {} have submitted as many operations, but not the same", a.rank, b.rank);
    }
    a.pruned |= b.pruned;
    a.end = std::max(a.end, b.end);
    into = a.bytes();
  }
};

/// How often each datum was written, on one rank; and the first one on which two ranks differ.
struct VersionReport {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t rank = 0;
  std::uint64_t datum = kNone;      ///< the least id on which ranks differ
  std::uint64_t versions[2] = {};   ///< of it
  std::uint64_t ranks[2] = {};
  std::vector<std::uint64_t> counts;

  Bytes bytes() const {
    Writer writer;
    writer.number(rank).number(datum).number(versions[0]).number(versions[1]).number(ranks[0]).number(ranks[1]);
    for (const std::uint64_t count : counts) writer.number(count);
    return writer.take();
  }
  static VersionReport from(std::span<const std::byte> bytes) {
    Reader reader(bytes);
    VersionReport report;
    report.rank = reader.number();
    report.datum = reader.number();
    for (std::uint64_t& version : report.versions) version = reader.number();
    for (std::uint64_t& rank : report.ranks) rank = reader.number();
    while (reader.more()) report.counts.push_back(reader.number());
    return report;
  }
  static void merge(Bytes& into, std::span<const std::byte> from) {
    VersionReport a = VersionReport::from(into);
    VersionReport b = VersionReport::from(from);
    if (b.rank < a.rank) std::swap(a, b);
    if (b.datum < a.datum) {
      a.datum = b.datum;
      std::copy(b.versions, b.versions + 2, a.versions);
      std::copy(b.ranks, b.ranks + 2, a.ranks);
    }
    for (std::size_t id = 0; id < std::min({a.counts.size(), b.counts.size(), static_cast<std::size_t>(a.datum)}); ++id) {
      if (a.counts[id] == b.counts[id]) continue;
      a.datum = id;
      a.versions[0] = a.counts[id];
      a.versions[1] = b.counts[id];
      a.ranks[0] = a.rank;
      a.ranks[1] = b.rank;
    }
    into = a.bytes();
  }
};

/// The failure that is earliest in the flow, whether it was cancelled, and the least numbers.
struct Outcome {
  std::uint64_t failure = UINT64_MAX;
  std::uint64_t cancelled = 0;
  std::uint64_t traced = 0;  ///< all ranks are, and have not compared their clocks
  std::uint64_t rank = 0;
  std::string description;
  std::vector<std::uint64_t> least;

  Bytes bytes() const {
    Writer writer;
    writer.number(failure).number(cancelled).number(traced).number(rank).text(description);
    for (const std::uint64_t value : least) writer.number(value);
    return writer.take();
  }
  static Outcome from(std::span<const std::byte> bytes) {
    Reader reader(bytes);
    Outcome outcome;
    for (std::uint64_t* number : {&outcome.failure, &outcome.cancelled, &outcome.traced, &outcome.rank})
      *number = reader.number();
    outcome.description = reader.text();
    while (reader.more()) outcome.least.push_back(reader.number());
    return outcome;
  }
  static void merge(Bytes& into, std::span<const std::byte> from) {
    Outcome a = Outcome::from(into);
    Outcome b = Outcome::from(from);
    if (b.failure < a.failure || (b.failure == a.failure && b.rank < a.rank)) {
      a.failure = b.failure;
      a.rank = b.rank;
      a.description = b.description;
    }
    a.cancelled |= b.cancelled;
    a.traced &= b.traced;
    a.least.resize(std::max(a.least.size(), b.least.size()), 0);
    for (std::size_t i = 0; i < b.least.size(); ++i)
      if (b.least[i] != 0 && (a.least[i] == 0 || b.least[i] < a.least[i])) a.least[i] = b.least[i];
    into = a.bytes();
  }
};

}  // namespace

void Flow::work_until(const std::atomic<bool>& done) {
  struct Context {
    const std::atomic<bool>& done;
    const std::atomic<bool>& aborted;
  } context{done, aborted_};
  core_.loop().run_until(
      [](void* what) {
        const auto& waits = *static_cast<Context*>(what);
        return waits.done.load() || waits.aborted.load();
      },
      &context);
}

void Flow::throw_if_aborted() {
  const std::exception_ptr why = transfers_.aborted();
  if (why == nullptr) return;
  abort_told_ = true;
  std::rethrow_exception(why);
}

void Flow::tell_abort(const std::string& text) {
  aborted_.store(true);
  copies_.lift();
  give_up_cancel();
  // What is under way will never end: who should take it has given up, too. But the others are told first, each on the link that
  // is closed then, so that all hear the reason before they see that this rank is gone.
  const auto missing = std::make_shared<std::atomic<std::uint32_t>>(size_);
  const auto told = [this, missing] {
    if (missing->fetch_sub(1) == 1) endpoint_->abandon();
  };
  for (std::uint32_t step = 1; step < size_; ++step) send_abort((rank_ + step) % size_, text, told);
  told();
  core_.executor().caller().wake();
}

/// A rank is gone. Why may stand in a message of it that has arrived and is not handled yet: a word to ourselves comes after it.
void Flow::note_loss(const std::string& text) {
  send_abort(rank_, text, [] {});
}

void Flow::send_abort(std::uint32_t to, const std::string& text, const std::function<void()>& told) {
  const auto kept = std::make_shared<std::string>(text);
  const auto done = [kept, told](const comm::Status&) { told(); };
  endpoint_->isend(base::Rank(to), comm::Tag(0), comm::SendBuffer(kept->data(), kept->size()),
                   {.channel = endpoint_->channel("tandem.dist.abort"), .priority = Agreement::kPriority,
                    .callbacks = {.released = done, .failed = done}});
}

std::vector<std::byte> Flow::agree(Bytes mine, Agreement::Merge merge) {
  struct Answer {
    Bytes bytes;
    std::atomic<bool> there{false};
  };
  const auto answer = std::make_shared<Answer>();
  agreement_.begin(std::move(mine), std::move(merge), [this, answer](std::span<const std::byte> outcome) {
    answer->bytes.assign(outcome.begin(), outcome.end());
    answer->there.store(true);
    core_.executor().caller().wake();
  });
  work_until(answer->there);
  if (!answer->there.load()) throw_if_aborted();
  return answer->bytes;
}

/// The least of all ranks' budgets is everybody's, since both ends of a transfer derive from it what is kept.
void Flow::agree_on_start() {
  if (size_ == 1) return;
  const StartReport mine{.copy_bytes = options_.copy_bytes, .traced = wants_clocks() ? 1U : 0U};
  const StartReport all = StartReport::from(agree(mine.bytes(), &StartReport::merge));
  if (all.traced != 0) compare_clocks();
  const auto budget = static_cast<std::size_t>(all.copy_bytes);
  copies_.set(budget);
  if (budget != SIZE_MAX) kept_bytes_ = budget / kKeptPart / (size_ - 1);
}

/// In an event loop, where there are no threads, clocks are equal.
bool Flow::wants_clocks() const {
  return !clocks_compared_ && core_.trace().session() != nullptr && endpoint_->idle_work() != nullptr;
}

void Flow::compare_clocks() {
  clocks_compared_ = true;
  trace::Session& session = *core_.trace().session();
  // The date when rank 0's clock shows 0, which the others do not know.
  const Bytes date = agree(Writer().number(rank_ == 0 ? static_cast<std::uint64_t>(session.date_offset_ns()) : 0).take(),
                     [](Bytes& into, std::span<const std::byte> from) {
                       into = Writer().number(Reader(into).number() | Reader(from).number()).take();
                     });
  session.set_reference_date(static_cast<std::int64_t>(Reader(date).number()));
  clocks_ = TraceClocks::start(*endpoint_, session, *core_.world().clock, options_.trace_sync_every_ns, core_.log());
}

void Flow::begin_check_of_flow() {
  flow_checked_.store(false);
  const FlowReport mine{.rank = rank_, .positions = closed_at_, .end = position_, .data = handles_.size(),
                        .data_digest = data_digest_, .digest = digest_, .pruned = pruned_ ? 1U : 0U, .difference = {}};
  agreement_.begin(mine.bytes(), &FlowReport::merge, [this](std::span<const std::byte> outcome) {
    const FlowReport all = FlowReport::from(outcome);
    if (!all.difference.empty()) return name_difference(all.difference);
    end_of_all_ = all.end;
    any_pruned_ = all.pruned != 0;
    flow_checked_.store(true);
    core_.executor().caller().wake();
  });
}

/// Ranks have gone through different flows. The submitting threads wait meanwhile, so that places may be read here. Who has ever
/// passed over tasks knows no versions that could be compared.
void Flow::name_difference(const std::string& what) {
  VersionReport mine;
  mine.rank = rank_;
  // Named now: when the outcome is here the program may have heard it from another rank, and go on.
  std::vector<std::string> names;
  for (Handle* handle : handles_) {
    if (!has_pruned_) mine.counts.push_back(handle != nullptr ? place_of(*handle).version : 0);
    names.push_back(handle != nullptr ? handle->described() : "data that was let go");
  }
  agreement_.begin(mine.bytes(), &VersionReport::merge, [this, what, names](std::span<const std::byte> outcome) {
    const VersionReport all = VersionReport::from(outcome);
    std::string where;
    if (all.datum < names.size())
      where = fmt::format("; {} was written {} times on rank {} and {} times on rank {}", names[all.datum], all.versions[0],
                          all.ranks[0], all.versions[1], all.ranks[1]);
    const char* const or_pass = has_pruned_ ? ", or pass over as many" : "";
    transfers_.abort(fmt::format("ranks go through different flows: {}{}; all ranks must submit the same tasks in the same order"
                                 "{}", what, where, or_pass));
  });
}

void Flow::agree_on_outcome() {
  const runtime::FailureLog::Report report = core_.waits().take_failures();
  Outcome mine;
  mine.cancelled = stop_cancels() ? 1 : 0;
  mine.traced = wants_clocks() ? 1 : 0;
  if (report.failure != nullptr) {
    mine.failure = report.failure->id;
    mine.rank = rank_;
    mine.description = report.failure->description;
  }
  for (const std::atomic<std::uint64_t>* value : agreed_) mine.least.push_back(value->load(std::memory_order_relaxed));
  const Outcome all = Outcome::from(agree(mine.bytes(), &Outcome::merge));
  for (std::size_t i = 0; i < agreed_.size() && i < all.least.size(); ++i)
    agreed_[i]->store(all.least[i], std::memory_order_relaxed);
  agreed_.clear();
  begin_next_flow(all.cancelled != 0);
  if (all.traced != 0) compare_clocks();
  if (all.failure == UINT64_MAX) return;
  if (report.failure != nullptr && report.failure->id == all.failure) core_.waits().throw_failure(report);
  // Told before, here, and the cause of something elsewhere since.
  if (const runtime::FlowFailure* known = core_.executor().failures().find(all.failure); known != nullptr)
    std::rethrow_exception(known->exception);
  throw RemoteFailure(fmt::format("on rank {}, {}", all.rank, all.description));
}

void Flow::wait() {
  if (recording_ != nullptr) throw UsageError("cannot wait while a graph is recorded");
  if (!closed_) close();
  begin_operation();
  begin_check_of_flow();
  core_.waits().drain();
  work_until(flow_checked_);
  throw_if_aborted();
  // Who has passed over tasks may not have known of data that came home.
  position_ = end_of_all_;
  if (any_pruned_) digest_ = 0;
  pruned_ = false;
  waited_at_ = position_;  // also when a kernel has thrown: all ranks know
  agree_on_outcome();
}

}  // namespace tandem::dist
