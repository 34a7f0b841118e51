// tandem/api/acquired.hpp: the application's own access to data.
#pragma once

#include <memory>
#include <utility>

namespace tandem::runtime {
struct ApplicationAccess;
}

namespace tandem {

namespace internal {

/// Ends the access and frees its memory.
struct EndAccess {
  void operator()(runtime::ApplicationAccess* access) const noexcept;
};
using HeldAccess = std::unique_ptr<runtime::ApplicationAccess, EndAccess>;

}  // namespace internal

/// The application's own access to data, from `Runtime::acquire`. Tasks that conflict with the access wait until this object is
/// destroyed or `release` is called. Submitting thread.
template <class View>
class Acquired {
 public:
  Acquired(internal::HeldAccess access, View view) : access_(std::move(access)), view_(view) {}
  Acquired(Acquired&&) noexcept = default;

  auto& operator*() noexcept { return view_; }
  auto* operator->() noexcept { return &view_; }
  void release() noexcept { access_.reset(); }

 private:
  internal::HeldAccess access_;
  View view_;
};

}  // namespace tandem
