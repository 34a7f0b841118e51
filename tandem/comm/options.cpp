// tandem/comm/options.cpp: the options of an endpoint and their help.
#include <charconv>
#include <string>

#include <fmt/format.h>

#include "tandem/base/config.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/base/option.hpp"
#include "tandem/comm/endpoint.hpp"

namespace tandem::comm {

void add_comm_options(base::Registry& registry) {
  using base::OptionType;
  const EndpointOptions defaults;
  const auto number = [](auto value) { return std::to_string(value); };
  registry.add({.name = "comm.transports",
                .default_value = "",
                .help = "transports in order of preference, as shm,tcp (empty: automatic)"});
  registry.add({.name = "comm.strategy",
                .default_value = defaults.strategy,
                .help = "how packets are formed: fifo, aggregate, priority, split"});
  registry.add({.name = "comm.progress", .type = OptionType::choice, .default_value = defaults.progress,
                .help = "thread: a progress thread polls the network; inline: only calls of the program do",
                .choices = {"thread", "inline"}});
  registry.add({.name = "comm.progress_core",
                .default_value = "-1",
                .help = "core that the progress thread is bound to, by the number of one of its hardware threads (-1: "
                        "none; model: the task runtime "
                        "chooses a core without a worker, and message_node, by the network card's place and the model "
                        "of memory contention)"});
  registry.add({.name = "comm.spin", .type = OptionType::duration, .default_value = "20us",
                .help = "how long a thread polls without traffic before it sleeps", .minimum = 0});
  registry.add({.name = "comm.eager", .type = OptionType::bytes, .default_value = "0",
                .help = "largest message that is sent eagerly (0: as transport and network allow)", .minimum = 0});
  registry.add({.name = "comm.credit_bytes", .type = OptionType::bytes, .default_value = number(defaults.credit_bytes),
                .help = "bytes of unexpected messages kept for one peer; messages of up to 16 bytes do not count",
                .minimum = 4096});
  registry.add({.name = "comm.credit_messages", .type = OptionType::integer, .default_value = number(defaults.credit_messages),
                .help = "number of unexpected eager messages kept for one peer", .minimum = 4, .maximum = 1e9});
  registry.add({.name = "comm.credit_announcements", .type = OptionType::integer,
                .default_value = number(defaults.credit_announcements),
                .help = "messages announced to one peer at once for which no receive waits",
                .minimum = 1, .maximum = 1e9});
  registry.add({.name = "comm.forward_bytes",
                .type = OptionType::bytes,
                .default_value = number(defaults.forward_bytes),
                .help = "memory for broadcasts that come before their receive, and for the records beside their data",
                .minimum = 0});
  registry.add({.name = "comm.interface",
                .default_value = "",
                .help = "network interface or address of tcp (empty: automatic)"});
  registry.add({.name = "comm.ports", .default_value = "", .help = "ports of tcp, as 20000-20100 (empty: any)"});
  registry.add({.name = "comm.rails", .type = OptionType::integer, .default_value = "1", .help = "tcp connections per peer",
                .minimum = 1, .maximum = 64});
  registry.add({.name = "comm.port_priorities", .type = OptionType::boolean, .default_value = "true",
                .help = "on networks, large messages wait while more urgent ones to other ranks are sent or announced"});
  registry.add({.name = "comm.cross_memory", .type = OptionType::boolean, .default_value = "true",
                .help = "peers may read this process's memory: directly over shm, by zero-copy pages over tcp"});
  registry.add({.name = "comm.start_timeout",
                .type = OptionType::duration,
                .default_value = "0",
                .help = "how long a rank waits for others that have not started (0: 60s; without limit under "
                        "tandem run, which notices ranks that end)",
                .minimum = 0});
  registry.add({.name = "comm.modules", .default_value = "",
                .help = "folder of the modules of the transports ucx and mpi (empty: where Tandem was installed)"});
}

std::optional<int> progress_core(const base::Config& config) {
  const std::string& text = config.get_string("comm.progress_core");
  if (text == "model") return std::nullopt;
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc() || last != end || number < -1)
    throw StartError(fmt::format(
        "option comm.progress_core: '{}' is neither the number of a hardware thread, nor -1 (none), nor model", text));
  return number;
}

EndpointOptions comm_options(const base::Config& config) {
  EndpointOptions options;
  const std::string& list = config.get_string("comm.transports");
  for (std::size_t first = 0; first < list.size();) {
    const std::size_t end = std::min(list.find(',', first), list.size());
    if (end > first) options.transports.push_back(list.substr(first, end - first));
    first = end + 1;
  }
  options.strategy = config.get_string("comm.strategy");
  options.progress = config.get_string("comm.progress");
  options.progress_core = progress_core(config).value_or(-1);
  options.spin_ns = config.get_duration_ns("comm.spin");
  options.eager_bytes = static_cast<std::size_t>(config.get_bytes("comm.eager"));
  options.credit_bytes = static_cast<std::size_t>(config.get_bytes("comm.credit_bytes"));
  options.credit_messages = static_cast<std::uint32_t>(config.get_int("comm.credit_messages"));
  options.credit_announcements = static_cast<std::uint32_t>(config.get_int("comm.credit_announcements"));
  options.forward_bytes = static_cast<std::size_t>(config.get_bytes("comm.forward_bytes"));
  options.interface = config.get_string("comm.interface");
  options.ports = config.get_string("comm.ports");
  options.rails = static_cast<unsigned>(config.get_int("comm.rails"));
  options.port_priorities = config.get_bool("comm.port_priorities");
  options.cross_memory = config.get_bool("comm.cross_memory");
  options.modules = config.get_string("comm.modules");
  return options;
}

}  // namespace tandem::comm
