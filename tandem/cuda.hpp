// tandem/cuda.hpp: what a program needs whose codelets have implementations for CUDA devices (`Codelet::cuda`).
#pragma once

#include "tandem/api/cuda_kernel.hpp"
#include "tandem/api/page_lock.hpp"
