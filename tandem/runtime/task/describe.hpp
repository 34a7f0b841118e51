// tandem/runtime/task/describe.hpp: names of tasks and data in messages for people.
#pragma once

#include <string>
#include <string_view>

#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// Name of a task for messages: "task 12 'potrf' (submitted at cholesky.cpp:31)".
std::string describe(const Task& task);
/// Why a task failed: "task 12 'potrf' (submitted at cholesky.cpp:31): `what`; data: A (read_write)". Of many data the
/// first ones.
std::string describe_failure(const Task& task, std::string_view what);
/// Name of the task, or of its codelet.
std::string name_of(const Task& task);
/// Name of a line: "file.cpp:31", without folders; "an unknown line" when not known.
std::string describe(const SourceLine& where);

}  // namespace tandem::runtime
