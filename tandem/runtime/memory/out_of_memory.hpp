// tandem/runtime/memory/out_of_memory.hpp: the exception for memory that a node did not have.
#pragma once

#include <new>
#include <string>
#include <utility>

namespace tandem {

/// A memory node had no memory for data. `what` names the data, the bytes, the node, and what Tandem has allocated
/// there.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

}  // namespace tandem
