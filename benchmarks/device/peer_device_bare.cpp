// benchmarks/device/peer_device_bare.cpp: the same with OpenCL alone: one queue each for copies there, kernels, and
// copies back.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/device/harness.hpp"

namespace {

using benchmarks::device::Plan;

void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  std::fprintf(stderr, "%s: OpenCL error %d\n", what, status);
  std::exit(1);
}

/// One that is no processor if there is one.
cl_device_id find_device() {
  cl_uint count = 0;
  clGetPlatformIDs(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  cl_device_id device = nullptr;
  constexpr cl_device_type cards = CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR, all = CL_DEVICE_TYPE_ALL;
  for (const cl_device_type type : {cards, all})
    for (cl_platform_id platform : platforms)
      if (device == nullptr && clGetDeviceIDs(platform, type, 1, &device, nullptr) != CL_SUCCESS) device = nullptr;
  if (device == nullptr) {
    std::fprintf(stderr, "there is no OpenCL device here\n");
    std::exit(2);
  }
  return device;
}

class BareAdapter {
 public:
  static constexpr const char* name = "bare";

  explicit BareAdapter(const Plan& plan)
      : steps_(plan.steps), count_(plan.floats), rows_(plan.floats / benchmarks::device::row_floats) {
    cl_int status = CL_SUCCESS;
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status);
    check(status, "clCreateContext");
    for (cl_command_queue* queue : {&there_, &compute_, &back_}) {
      *queue = clCreateCommandQueue(context_, device_, 0, &status);
      check(status, "clCreateCommandQueue");
    }
    const char* source = benchmarks::device::kernel_source;
    cl_program program = clCreateProgramWithSource(context_, 1, &source, nullptr, &status);
    check(status, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device_, "", nullptr, nullptr), "clBuildProgram");
    work_ = clCreateKernel(program, "work", &status);
    check(status, "clCreateKernel");
    nothing_ = clCreateKernel(program, "nothing", &status);
    check(status, "clCreateKernel");
    for (unsigned i = 0; i < plan.blocks; ++i) {
      host_.emplace_back(plan.floats, 1.0f);
      buffers_.push_back(clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes(), nullptr, &status));
      check(status, "clCreateBuffer");
    }
  }
  std::string version() const { return ""; }
  unsigned workers() const { return 1; }

  void kernels() {
    for (cl_mem buffer : buffers_) run(work_, rows_, buffer, nullptr, nullptr);
    check(clFinish(compute_), "clFinish");
  }
  void round_trips(bool works) {
    std::vector<cl_event> ends(host_.size());
    for (std::size_t i = 0; i < host_.size(); ++i) {
      host_[i][0] = 1;
      cl_event copied = nullptr, computed = nullptr;
      check(clEnqueueWriteBuffer(there_, buffers_[i], CL_FALSE, 0, bytes(), host_[i].data(), 0, nullptr, &copied),
            "clEnqueueWriteBuffer");
      check(clFlush(there_), "clFlush");
      run(works ? work_ : nothing_, works ? rows_ : 1, buffers_[i], &copied, &computed);
      check(clEnqueueReadBuffer(back_, buffers_[i], CL_FALSE, 0, bytes(), host_[i].data(), 1, &computed, &ends[i]),
            "clEnqueueReadBuffer");
      check(clFlush(back_), "clFlush");
      clReleaseEvent(copied);
      clReleaseEvent(computed);
    }
    for (std::size_t i = 0; i < host_.size(); ++i) {
      check(clWaitForEvents(1, &ends[i]), "clWaitForEvents");
      clReleaseEvent(ends[i]);
      if (host_[i][0] < 0) std::abort();
    }
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(float); }

  void run(cl_kernel kernel, std::size_t items, cl_mem buffer, const cl_event* after, cl_event* end) {
    const cl_int steps = steps_;
    const cl_ulong count = count_;
    check(clSetKernelArg(kernel, 0, sizeof(steps), &steps), "clSetKernelArg");
    check(clSetKernelArg(kernel, 1, sizeof(buffer), &buffer), "clSetKernelArg");
    check(clSetKernelArg(kernel, 2, sizeof(count), &count), "clSetKernelArg");
    check(clEnqueueNDRangeKernel(compute_, kernel, 1, nullptr, &items, nullptr, after != nullptr ? 1 : 0, after, end),
          "clEnqueueNDRangeKernel");
    check(clFlush(compute_), "clFlush");
  }

  int steps_;
  std::size_t count_, rows_;
  cl_device_id device_ = find_device();
  cl_context context_ = nullptr;
  cl_command_queue there_ = nullptr, compute_ = nullptr, back_ = nullptr;
  cl_kernel work_ = nullptr, nothing_ = nullptr;
  std::vector<std::vector<float>> host_;
  std::vector<cl_mem> buffers_;
};

}  // namespace

int main(int argc, char** argv) { benchmarks::device::measure<BareAdapter>(Plan(argc, argv)); }
