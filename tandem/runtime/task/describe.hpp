// tandem/runtime/task/describe.hpp: names of tasks and data in messages for people.
#pragma once

#include <string>
#include <string_view>

#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// "task 12 'potrf' (submitted at cholesky.cpp:31)".
std::string describe(const Task& task);
/// "task 12 'potrf' (submitted at cholesky.cpp:31): `what`; data: A (read_write)": why it failed. Of many data the first ones.
std::string describe_failure(const Task& task, std::string_view what);
/// Its own name, or its codelet's.
std::string name_of(const Task& task);
/// "file.cpp:31", without folders; "an unknown line" when not known.
std::string describe(const SourceLine& where);

}  // namespace tandem::runtime
