// tests/cuda/fake_nvrtc.cpp: libnvrtc.so for tests. Its machine code is the source.
#include <cstring>

#include "tandem/runtime/device/cuda/cuda_compiler.hpp"
#include "tests/cuda/fake_objects.hpp"

namespace tandem::runtime::cuda {

struct ProgramObject {
  std::string text;
  std::string name;
  std::string lowered;
  std::string log;
  bool compiled = false;
};

}  // namespace tandem::runtime::cuda

using tandem::runtime::cuda::Program;
using tandem::runtime::cuda::ProgramObject;

namespace {

constexpr int kInvalidInput = 3, kInvalidOption = 5, kCompilation = 6, kNoLoweredNames = 9;

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 4;
  return 0;
}
int nvrtcCreateProgram(Program* program, const char* text, const char*, int headers, const char* const*,
                       const char* const*) {
  if (headers != 0) return kInvalidInput;
  *program = new ProgramObject;
  (*program)->text = text;
  return 0;
}
int nvrtcDestroyProgram(Program* program) {
  delete *program;
  *program = nullptr;
  return 0;
}
int nvrtcAddNameExpression(Program program, const char* name) {
  program->name = name;
  program->lowered = "_Z" + program->name;
  return 0;
}
int nvrtcCompileProgram(Program program, int count, const char* const* options) {
  ++tandem::fake_cuda::settings().compilations;
  if (count < 1 || std::strcmp(options[0], "--gpu-architecture=sm_90") != 0) return kInvalidOption;
  if (program->text.find("nonsense") != std::string::npos)
    program->log = "tandem.cu(1): error: identifier \"nonsense\" is undefined\n";
  else if (program->text.find(program->name.substr(0, program->name.find('<')) + "(") == std::string::npos)
    program->log = "error: identifier \"" + program->name + "\" is undefined\n";
  program->compiled = program->log.empty();
  return program->compiled ? 0 : kCompilation;
}
int nvrtcGetLoweredName(Program program, const char* name, const char** lowered) {
  if (!program->compiled) return kNoLoweredNames;
  if (program->name != name) return kInvalidInput;
  *lowered = program->lowered.c_str();
  return 0;
}
int nvrtcGetProgramLogSize(Program program, std::size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return 0;
}
int nvrtcGetSupportedArchs(int* architectures) {
  architectures[0] = 80;
  architectures[1] = 90;
  return 0;
}
int nvrtcGetPTXSize(Program, std::size_t*) { return kInvalidInput; }  // its devices are known to it
int nvrtcGetPTX(Program, char*) { return kInvalidInput; }
int nvrtcGetCUBINSize(Program program, std::size_t* bytes) {
  *bytes = program->text.size() + 1;
  return 0;
}
int nvrtcGetCUBIN(Program program, char* code) {
  std::memcpy(code, program->text.c_str(), program->text.size() + 1);
  return 0;
}

}  // extern "C"
