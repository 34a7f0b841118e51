// tandem/dist/datum.hpp: what a rank knows of data that has travelled from it or to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tandem/dist/bag.hpp"
#include "tandem/dist/recipient_set.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem::dist {

/// Threads: the submitting thread.
class Datum {
 public:
  explicit Datum(runtime::Handle& the_handle) : handle(the_handle) {}

  runtime::Handle& handle;

  // While this rank holds the data:
  RecipientSet recipients;      ///< ranks that have the current version, or will
  std::shared_ptr<Bag> bag;     ///< the last send of the current version, or null
  std::uint32_t sent_to = 0;    ///< recipients of the current version
  std::uint32_t first_bag = 0;  ///< of them, in its first message
  std::uint32_t bags = 0;       ///< its messages

  /// The last explicit send (`ExplicitMessages`).
  struct ExplicitSend {
    std::shared_ptr<Bag> bag;   ///< null: none of the current value
    std::uint32_t version = 0;  ///< by `Place::version`
    RecipientSet recipients;
  } explicit_send;

  bool reserved = false;     ///< the memory of its copy counts in the budget
  bool listed_away = false;  ///< `Versions` has it in the list of data away from their owners
  std::size_t place_away = 0;  ///< where in that list

  /// Of an object: its bytes, shared by its sends. Otherwise null.
  const std::shared_ptr<PackedValue>& packed() {
    if (handle.travels_packed() && packed_ == nullptr) packed_ = std::make_shared<PackedValue>();
    return packed_;
  }

 private:
  std::shared_ptr<PackedValue> packed_;
};

}  // namespace tandem::dist
