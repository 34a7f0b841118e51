// tandem/dist/datum.hpp: what a rank knows of data that has travelled from it or to it.
#pragma once

#include <cstdint>
#include <memory>

#include "tandem/dist/bag.hpp"
#include "tandem/dist/recipient_set.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem::dist {

/// Of the submitting thread.
class Datum {
 public:
  explicit Datum(runtime::Handle& the_handle) : handle(the_handle) {}

  runtime::Handle& handle;

  // While this rank holds the data:
  RecipientSet recipients;       ///< ranks that have the present version, or will
  std::shared_ptr<Bag> bag;      ///< the last send of the present version, or null
  std::uint32_t sent_to = 0;     ///< recipients of the present version
  std::uint32_t first_bag = 0;   ///< of them, in its first message
  std::uint32_t bags = 0;        ///< its messages

  std::shared_ptr<Bag> told;     ///< the last explicit send of the present value, or null
  std::uint32_t told_version = 0;  ///< by `Place::version`
  RecipientSet told_ranks;         ///< to which it goes

  std::shared_ptr<PackedValue> packed;  ///< of an object, once it was sent

  bool reserved = false;         ///< the memory of its copy counts in the budget
  bool listed_away = false;
};

}  // namespace tandem::dist
