// tandem/comm/mcast/one_port.cpp: the recurrence of one_port.hpp, in one pass over the vertices.
#include "tandem/comm/mcast/one_port.hpp"

#include <algorithm>

#include "tandem/base/assert.hpp"

namespace tandem::comm {

void OnePortTimes::run(std::span<const std::uint32_t> parent, const OnePort& port, RootShare share) {
  TANDEM_ASSERT(port.segments > 0);
  TANDEM_ASSERT(port.interleaved || share.slots == 0);
  port_ = port;
  if (port_.credit <= 0) {
    port_.credit = 0;
    port_.fast_send = port_.send;
  }
  vertices_.assign(std::max<std::size_t>(parent.size(), 1), Vertex{});
  for (std::size_t v = 1; v < parent.size(); ++v) {
    TANDEM_DEBUG_ASSERT(parent[v] < v);
    ++vertices_[parent[v]].children;
  }
  if (share.slots > 0) {
    vertices_[0].children = share.slots;
    vertices_[0].served = share.slots_before;
  }

  const double flight = port.latency + port.receive;
  for (std::size_t v = 1; v < parent.size(); ++v) {
    Vertex& from = vertices_[parent[v]];
    Vertex& to = vertices_[v];
    if (port.interleaved) {
      serve_rounds(from, to, from.children, from.served);
    } else if (from.served == 0) {
      serve_rounds(from, to, 1, 0);
      const double last_sent =
          std::max(from.first + port_.segments * port_.send - port_.credit, from.finish + port_.fast_send);
      from.end = std::max(last_sent, from.first + port_.segments * port_.fast_send);
    } else {
      to.first = from.end + port.send + flight;
      to.fast = to.period = std::max(port.send, port.receive);
      to.finish = to.first + (port.segments - 1.0) * to.period;
      from.end += port.segments * port.send;
    }
    ++from.served;
  }
}

/// Times of child `index` of `children` that are served segment by segment.
void OnePortTimes::serve_rounds(const Vertex& from, Vertex& to, std::uint32_t children, std::uint32_t index) const {
  const double flight = port_.latency + port_.receive, later = port_.segments - 1.0, turn = index + 1.0;
  to.first = from.first + std::max(turn * port_.fast_send, turn * port_.send - port_.credit) + flight;
  to.fast = std::max({from.fast, children * port_.fast_send, port_.receive});
  to.period = std::max({from.period, children * port_.send, port_.receive});
  const double port_limit = from.first + turn * port_.send - port_.credit + later * children * port_.send + flight;
  const double parent_limit = from.finish + turn * port_.fast_send + flight;
  to.finish = std::max({port_limit, parent_limit, to.first + later * to.fast});
}

double OnePortTimes::finish_of_all() const {
  double last = 0;
  for (std::size_t v = 1; v < vertices_.size(); ++v) last = std::max(last, vertices_[v].finish);
  return last;
}

}  // namespace tandem::comm
