// tandem/opencl.hpp: what a program needs whose codelets have implementations in OpenCL C (`Codelet::opencl`).
#pragma once

#include "tandem/api/opencl_kernel.hpp"
