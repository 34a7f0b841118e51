// python/src/contention.hpp: models of memory contention, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace tandem::python {

/// Adds class ContentionModels and exception ContentionError to the extension.
void add_contention(nanobind::module_& module);

}  // namespace tandem::python
