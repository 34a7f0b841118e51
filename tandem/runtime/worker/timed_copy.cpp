// tandem/runtime/worker/timed_copy.cpp: starts a copy and waits.
#include "tandem/runtime/worker/timed_copy.hpp"

#include <exception>
#include <future>
#include <memory>

namespace tandem::runtime {

std::optional<double> timed_copy(Copier& copier, CopyRequest request, std::size_t bytes, const clock::Clock& clock) {
  request.shape = {.rows = bytes, .cols = 1, .element_bytes = 1};
  request.from_ld = request.to_ld = bytes;
  const auto end = std::make_shared<std::promise<std::exception_ptr>>();  // the copier may use it after this call
  try {
    const std::int64_t begin_ns = clock.now_ns();
    const CopyState state = copier.start(request,
                                         [end](const std::exception_ptr& failure) { end->set_value(failure); });
    if (state == CopyState::posted && end->get_future().get() != nullptr) return {};
    return static_cast<double>(clock.now_ns() - begin_ns);
  } catch (...) {
    return {};
  }
}

}  // namespace tandem::runtime
