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

/// The application's own access to data, from `Runtime::acquire`. Tasks that conflict with the access wait until this
/// object is destroyed or `release` is called. Submitting thread.
template <class View>
class Acquired {
 public:
  /// `Runtime::acquire` makes it.
  Acquired(internal::HeldAccess access, View view) : access_(std::move(access)), view_(view) {}
  Acquired(Acquired&&) noexcept = default;  ///< the access goes on in the new object

  auto& operator*() noexcept { return view_; }        ///< the view: a span, a MatrixView, or a reference
  auto* operator->() noexcept { return &view_; }      ///< a member of the view
  void release() noexcept { access_.reset(); }        ///< ends the access; the view must not be used any more

 private:
  internal::HeldAccess access_;
  View view_;
};

}  // namespace tandem
