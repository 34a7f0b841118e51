// tandem/comm/engine/describe.cpp: what is under way, in words.
#include <fmt/format.h>

#include "tandem/comm/engine/engine.hpp"

namespace tandem::comm::internal {
namespace {

std::string strand_words(const Strand& strand) {
  if (!strand.known) return "not known yet";
  unsigned sent = 0;
  unsigned acknowledged = 0;
  for (const auto& child : strand.children) {
    sent += child->sent;
    acknowledged += child->acknowledged;
  }
  return fmt::format("{} of {} bytes here{}{}{}, {} children ({} sent to, {} have acknowledged){}", strand.arrived,
                     strand.bytes,
                     strand.parent != nullptr ? fmt::format(" from rank {}", strand.parent->rank.value()) : "",
                     strand.incoming != nullptr ? fmt::format(" ({} asked for)", strand.incoming->granted) : "",
                     strand.declined ? ", declined" : "", strand.children.size(), sent, acknowledged,
                     strand.done_sent ? ", acknowledged upwards" : "");
}

}  // namespace

std::string Engine::describe() const {
  std::string text = fmt::format(
      "rank {}: {} requests under way, {} receives and {} probes posted, {} messages unexpected\n",
      parts_.context.rank.value(), parts_.completions.outstanding(), parts_.arrivals.matcher().posted_count(),
      parts_.arrivals.awaiting_count(), parts_.arrivals.matcher().kept_count());
  for (const auto& [rank, peer] : parts_.peers.all()) {
    const std::size_t held = peer->deferred != nullptr ? peer->deferred->size() : 0;
    if (peer->queue.empty() && held == 0 && peer->outgoing.empty() && peer->incoming.empty() && !peer->dead) continue;
    text +=
        fmt::format("  rank {}{}{}: {} messages and {} streams queued, {} held back, {} streams out, {} in{}\n", rank,
                    peer->dead ? " (dead)" : "", peer->awaited ? " (has not joined the job yet)" : "",
                    peer->queue.message_count(), peer->queue.stream_count(), held, peer->outgoing.size(),
                    peer->incoming.size(), !peer->rails.empty() && peer->rails[0]->blocked ? ", its rail is full" : "");
    peer->outgoing.for_each([&](const OutgoingStream& stream) {
      text += fmt::format("    out {}: {} of {} sent, {} granted, {} available\n", stream.id, stream.cursor,
                          stream.limit, stream.granted, stream.available);
    });
  }
  for (const auto& [name, broadcast] : parts_.broadcasts.all) {
    text += fmt::format(
        "  broadcast {} of rank {}, tag {}, {} bytes:{}{}{}{}{}\n", broadcast->id, broadcast->root.value(),
        broadcast->tag.value(), broadcast->bytes,
        broadcast->root == parts_.context.rank && !broadcast->started ? " not started" : "",
        broadcast->entered ? " in order" : "",
        broadcast->waiting ? fmt::format(" waits (after {}, fence {})", broadcast->after, broadcast->self.fence) : "",
        broadcast->receive != nullptr ? " matched" : "", broadcast->released ? " released" : "");
    for (unsigned i = 0; i < broadcast->strand_count; ++i)
      text += fmt::format("    {}\n", strand_words(broadcast->strands[i]));
  }
  for (const auto& [rank, root] : parts_.broadcasts.roots) {
    if (!root.plain.empty())
      text += fmt::format("  {} messages of rank {} wait for broadcasts\n", root.plain.size(), rank);
  }
  return text;
}

}  // namespace tandem::comm::internal
