// tests/comm_traffic/plan.cpp: drawing shapes and plans.
#include "plan.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

namespace tandem::comm_traffic {
namespace {

/// How the receives of one (rank, channel) are written.
enum class Style { exact, any_source, any_tag, anything, mixed };

class Drawing {
 public:
  Drawing(const Shape& shape, std::uint64_t seed) : random_(seed) { plan_.shape = shape; }

  Plan draw() {
    for (unsigned i = 0; i < plan_.shape.messages; ++i) plan_.messages.push_back(draw_message());
    draw_receives();
    merge_steps();
    return std::move(plan_);
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool percent(unsigned chance) { return below(100) < chance; }
  std::uint32_t some_rank() { return static_cast<std::uint32_t>(below(plan_.shape.ranks)); }
  int some_priority() { return static_cast<int>(below(5)) - 2; }

  std::size_t some_size() {
    const Shape& shape = plan_.shape;
    switch (below(8)) {
      case 0: return 0;
      case 1: return 1;
      case 2: return shape.eager_bytes - 1 + below(3);
      case 3: return 900 + below(300);
      case 4: return below(shape.largest_bytes);
      default: return below(200);
    }
  }

  PlannedMessage draw_message() {
    const Shape& shape = plan_.shape;
    PlannedMessage message{.source = some_rank(),
                           .to = {},
                           .channel = static_cast<std::uint32_t>(below(shape.channels)),
                           .tag = below(shape.tags),
                           .bytes = some_size(),
                           .header_bytes = percent(10) ? 8 + below(1017) : 8};
    message.broadcast = shape.ranks > 1 && percent(shape.broadcast_percent);
    if (!message.broadcast) {
      message.to.push_back({some_rank(), some_priority()});
      return message;
    }
    message.tree = static_cast<comm::TreeKind>(below(comm::tree_kind_count));
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
      if (rank != message.source && percent(60)) message.to.push_back({rank, some_priority()});
    }
    std::shuffle(message.to.begin(), message.to.end(), random_);
    return message;
  }

  void draw_receives() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, Style> styles;
    for (const PlannedMessage& message : plan_.messages) {
      for (const Delivery& delivery : message.to) {
        const auto [group, is_new] = styles.try_emplace({delivery.rank, message.channel}, Style::exact);
        if (is_new && percent(plan_.shape.wildcard_percent)) group->second = static_cast<Style>(1 + below(4));
        plan_.receives.push_back(receive_for(message, delivery, group->second));
      }
    }
    std::shuffle(plan_.receives.begin(), plan_.receives.end(), random_);
  }

  PlannedReceive receive_for(const PlannedMessage& message, const Delivery& delivery, Style style) {
    PlannedReceive receive{
        .rank = delivery.rank, .channel = message.channel, .source = message.source, .tag = message.tag};
    receive.any_source =
        style == Style::any_source || style == Style::anything || (style == Style::mixed && percent(40));
    receive.any_tag = style == Style::any_tag || style == Style::anything || (style == Style::mixed && percent(40));
    receive.may_starve = style == Style::mixed;
    receive.owned = percent(20);
    receive.capacity_bytes = percent(5) ? below(64) : std::max(plan_.shape.largest_bytes, plan_.shape.eager_bytes + 2);
    return receive;
  }

  /// Messages and receives of a rank keep their own order and are merged at random, receives early or late as the shape
  /// says.
  void merge_steps() {
    std::vector<std::vector<Step>> sends(plan_.shape.ranks), receives(plan_.shape.ranks);
    for (std::size_t i = 0; i < plan_.messages.size(); ++i) sends[plan_.messages[i].source].push_back({true, i});
    for (std::size_t i = 0; i < plan_.receives.size(); ++i) receives[plan_.receives[i].rank].push_back({false, i});
    plan_.steps.resize(plan_.shape.ranks);
    for (std::uint32_t rank = 0; rank < plan_.shape.ranks; ++rank) {
      auto send = sends[rank].begin();
      auto receive = receives[rank].begin();
      while (send != sends[rank].end() || receive != receives[rank].end()) {
        const bool early = receive != receives[rank].end() && percent(plan_.shape.early_percent);
        const bool take_receive = send == sends[rank].end() || early;
        plan_.steps[rank].push_back(take_receive ? *receive++ : *send++);
      }
    }
  }

  std::mt19937_64 random_;
  Plan plan_;
};

}  // namespace

Shape draw_shape(std::uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x5bd1e995);
  Shape shape;
  shape.ranks = static_cast<std::uint32_t>(1 + random() % 9);
  shape.channels = static_cast<std::uint32_t>(1 + random() % 3);
  shape.tags = 1 + random() % 6;
  shape.messages = static_cast<unsigned>(1 + random() % 60);
  shape.broadcast_percent = random() % 2 == 0 ? 0 : static_cast<unsigned>(random() % 80);
  shape.wildcard_percent = static_cast<unsigned>(random() % 101);
  shape.early_percent = static_cast<unsigned>(random() % 101);
  return shape;
}

Plan draw_plan(const Shape& shape, std::uint64_t seed) { return Drawing(shape, seed).draw(); }

}  // namespace tandem::comm_traffic
