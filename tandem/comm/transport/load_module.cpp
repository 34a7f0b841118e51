// tandem/comm/transport/load_module.cpp: asking the dynamic loader, and refusing what another version made.
#include "tandem/comm/transport/load_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <string_view>

namespace tandem::comm::internal {
namespace {

using base::Error;
using base::ErrorCode;

/// The file that the loader chose.
std::string file_of(void* library) {
  link_map* map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "?";
}

std::string versions_of(const TransportModule& module) {
  return fmt::format("Tandem {} (wire version {}, transport interface {})", module.version, module.wire_version,
                     module.interface);
}

bool same_version(const TransportModule& module) {
  const TransportModule ours;
  return module.interface == ours.interface && module.wire_version == ours.wire_version &&
         std::string_view(module.version) == ours.version;
}

}  // namespace

base::Result<const TransportModule*> load_module(const ModuleName& name, const std::string& folder) {
  const std::string file = fmt::format("libtandem_comm_{}.so", name.transport);
  const std::string wanted = folder.empty() ? file : fmt::format("{}/{}", folder, file);
  void* const library =
      dlopen(wanted.c_str(), RTLD_NOW | RTLD_NODELETE | (name.shares_symbols ? RTLD_GLOBAL : RTLD_LOCAL));
  if (library == nullptr) {
    return Error{
        ErrorCode::unsupported,
        fmt::format(
            "the transport {} cannot be loaded: {}. Install {} and build Tandem again, or say with comm.modules "
            "which folder has {}",
            name.transport, dlerror(), name.package, file)};
  }
  void* const entry = dlsym(library, module_entry);
  if (entry == nullptr) {
    return Error{
        ErrorCode::malformed,
        fmt::format("{} is no transport of Tandem: it has no function {}; remove it, or say with comm.modules which "
                    "folder has Tandem's",
                    file_of(library), module_entry)};
  }
  const TransportModule& module = *reinterpret_cast<decltype(&tandem_comm_transport_module)>(entry)();
  if (!same_version(module)) {
    return Error{
        ErrorCode::unsupported,
        fmt::format(
            "the transport {} in {} was made by {}, and this program by {}; build both from the same sources, or "
            "say with comm.modules which folder has the right one",
            name.transport, file_of(library), versions_of(module), versions_of({}))};
  }
  if (module.layout != transport_layout) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("the transport {} in {} was made by another build of {} than this program, with other sizes of its "
                    "types; build both together",
                    name.transport, file_of(library), versions_of(module))};
  }
  return &module;
}

}  // namespace tandem::comm::internal
