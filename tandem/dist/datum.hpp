// tandem/dist/datum.hpp: a rank's knowledge of data that has travelled from it or to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tandem/dist/bag.hpp"
#include "tandem/dist/recipient_set.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem::dist {

/// Knowledge of one travelled datum. Threads: the submitting thread.
class Datum {
 public:
  explicit Datum(runtime::Handle& the_handle) : handle(the_handle) {}

  runtime::Handle& handle;

  // The next members are used while this rank holds the data.
  RecipientSet recipients;      ///< ranks that have or will have the current version
  std::shared_ptr<Bag> bag;     ///< the last send of the current version, or null
  std::uint32_t sent_to = 0;    ///< number of recipients of the current version
  std::uint32_t first_bag = 0;  ///< recipients in its first message
  std::uint32_t bags = 0;       ///< number of its messages

  /// The last explicit send (`ExplicitMessages`).
  struct ExplicitSend {
    std::shared_ptr<Bag> bag;   ///< null: no send of the current value
    std::uint32_t version = 0;  ///< value of `Place::version`
    RecipientSet recipients;
  } explicit_send;

  bool reserved = false;     ///< the memory of its copy counts in the budget
  bool listed_away = false;  ///< `Versions` has it in the list of data away from their owners
  std::size_t place_away = 0;  ///< index in that list

  /// Bytes of an object, shared by its sends; null: not an object.
  const std::shared_ptr<PackedValue>& packed() {
    if (handle.travels_packed() && packed_ == nullptr) packed_ = std::make_shared<PackedValue>();
    return packed_;
  }

 private:
  std::shared_ptr<PackedValue> packed_;
};

}  // namespace tandem::dist
