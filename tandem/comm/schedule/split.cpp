// tandem/comm/schedule/split.cpp: highest priority first, and large messages over all rails.
#include <algorithm>
#include <cmath>

#include "tandem/comm/schedule/rail_share.hpp"
#include "tandem/comm/schedule/strategies.hpp"

namespace tandem::comm::internal {
namespace {

/// Like `priority`, but the rails share streams. Each time a rail can take a packet, it computes what it would carry of
/// the rest so that all rails end together (rail_share.hpp), and takes a segment of at most that. A rail whose part of
/// the rest is under a quarter of a segment leaves it to the others, so that the end of a stream, and a whole small
/// one, stays on the rail that is done with it first; it looks at the second stream then. No stream ends later than on
/// its best rail alone. Messages stay on rail 0.
class Split final : public Strategy {
 public:
  std::string_view name() const noexcept override { return "split"; }
  SendOrder order() const noexcept override { return SendOrder::priority; }

  void plan(const SendQueue& queue, const RailView& view, PacketPlan& out) const override {
    out.clear();
    const Portion portion = view.streams_wait ? Portion{} : choose(queue, view);
    if (view.rail == 0) {
      fill_packet(queue, view, portion.stream, portion.bytes, out);
    } else if (portion.stream) {
      add_bulk(out, *portion.stream, portion.bytes);
    }
  }

 private:
  struct Portion {
    SendItem* stream = nullptr;
    std::uint64_t bytes = 0;
  };

  static Portion choose(const SendQueue& queue, const RailView& view) noexcept {
    std::uint64_t ahead = 0;  // of streams that go before, on other rails
    for (unsigned place = 0; place < 2; ++place) {
      SendItem* const stream = queue.stream(place);
      if (!stream) break;
      const std::uint64_t bytes = portion_of(view, ahead, stream->bulk_bytes);
      if (bytes > 0) return {stream, bytes};
      ahead += stream->bulk_bytes;
    }
    return {};
  }

  static std::uint64_t portion_of(const RailView& view, std::uint64_t ahead, std::uint64_t bytes) noexcept {
    if (view.rails.size() <= 1) return segment_of(view, bytes);
    const std::uint64_t quarter = segment_of(view, view.segment_bytes) / 4;
    const std::uint64_t least = std::max<std::uint64_t>(1, std::min(bytes, quarter));
    const double share = share_of_rail(view.rails, view.rail, ahead + bytes, least);
    return segment_of(view, std::min(bytes, whole_lines(share)));
  }

  /// Rounds to cache lines, so that later segments are as well aligned as the first; never to nothing.
  static std::uint64_t whole_lines(double share) noexcept {
    const auto bytes = static_cast<std::uint64_t>(std::ceil(share));
    return bytes < 64 ? bytes : bytes & ~std::uint64_t{63};
  }
};

}  // namespace

std::unique_ptr<Strategy> make_split() { return std::make_unique<Split>(); }

}  // namespace tandem::comm::internal
