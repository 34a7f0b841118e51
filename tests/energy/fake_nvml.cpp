// tests/energy/fake_nvml.cpp: libnvidia-ml.so.1 for tests. Two devices: the first draws 100 W in the time of
// `tandem_fake_nvml_pass`, the second counts nothing.
#include <cstring>

namespace {

struct FakeDevice {
  unsigned number;
  const char* address;
  unsigned long long mj;
};
FakeDevice devices[] = {{0, "0000:3b:00.0", 123'456}, {1, "0000:af:00.0", 0}};
bool is_started = false;
bool is_lost = false;

constexpr int kUninitialised = 1, kInvalid = 2, kUnsupported = 3, kNotFound = 6, kLost = 15;

}  // namespace

extern "C" {

/// For tests: so many ms pass; negative: the first device is lost from now on.
void tandem_fake_nvml_pass(int ms) {
  if (ms < 0) is_lost = true;
  else devices[0].mj += static_cast<unsigned long long>(ms) * 100;
}

int nvmlInit_v2() {
  is_started = true;
  return 0;
}
int nvmlShutdown() {
  is_started = false;
  return 0;
}
const char* nvmlErrorString(int code) {
  switch (code) {
    case kUninitialised: return "Uninitialized";
    case kUnsupported: return "Not Supported";
    case kNotFound: return "Not Found";
    case kLost: return "GPU is lost";
    default: return "Invalid Argument";
  }
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  if (!is_started) return kUninitialised;
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, FakeDevice** device) {
  if (!is_started) return kUninitialised;
  if (index > 1) return kInvalid;
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, FakeDevice** device) {
  if (!is_started) return kUninitialised;
  for (FakeDevice& one : devices)
    if (std::strcmp(one.address, address) == 0) {
      *device = &one;
      return 0;
    }
  return kNotFound;
}
int nvmlDeviceGetIndex(FakeDevice* device, unsigned* index) {
  *index = device->number;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(FakeDevice* device, unsigned long long* mj) {
  if (!is_started) return kUninitialised;
  if (device->number == 1) return kUnsupported;
  if (is_lost) return kLost;
  *mj = device->mj;
  return 0;
}
}
