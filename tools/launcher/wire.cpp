// tools/launcher/wire.cpp: a GroupPlan as bytes.
#include "tools/launcher/wire.hpp"

#include <fmt/core.h>

#include "tandem/comm/bootstrap/bytes.hpp"
#include "tools/version.hpp"

namespace tandem::tools::wire {

using base::Error;
using base::ErrorCode;
using comm::internal::ByteReader;
using comm::internal::ByteWriter;

std::string encode(const GroupPlan& plan) {
  ByteWriter writer;
  writer.u32(version).text(tools::version);
  writer.u32(static_cast<std::uint32_t>(plan.words.size()));
  for (const std::string& word : plan.words) writer.text(word);
  writer.text(plan.folder).u32(static_cast<std::uint32_t>(plan.environment.size()));
  for (const auto& [name, value] : plan.environment) writer.text(name).text(value);
  writer.u32(plan.first_rank).u32(plan.count).u32(plan.size).u32(plan.first_local).u32(plan.local_size);
  writer.text(plan.job_id).text(plan.server).text(plan.secret).u8(plan.secret_in_environment);
  writer.u8(std::uint8_t(plan.input)).u8(std::uint8_t(plan.bind)).u8(std::uint8_t(plan.map)).text(plan.here);
  return writer.take();
}

base::Result<GroupPlan> decode_plan(std::string_view body) {
  ByteReader reader(body);
  const std::uint32_t their_version = reader.u32();
  const std::string_view their_tandem = reader.text(64);
  if (reader.ok() && their_version != version) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("the launcher is Tandem {} (launcher format {}), this host's is Tandem {} (launcher format {}): "
                    "install one version everywhere, or name the right one by --remote-tandem",
                    their_tandem, their_version, tools::version, version)};
  }
  GroupPlan plan;
  const auto text = [&] { return std::string(reader.text(most_frame_bytes)); };
  for (std::uint32_t left = reader.u32(); left > 0 && reader.ok(); --left) plan.words.push_back(text());
  plan.folder = text();
  for (std::uint32_t left = reader.u32(); left > 0 && reader.ok(); --left) {
    std::string name = text();
    plan.environment.emplace_back(std::move(name), text());
  }
  plan.first_rank = reader.u32();
  plan.count = reader.u32();
  plan.size = reader.u32();
  plan.first_local = reader.u32();
  plan.local_size = reader.u32();
  plan.job_id = text();
  plan.server = text();
  plan.secret = text();
  plan.secret_in_environment = reader.u8() != 0;
  plan.input = static_cast<Input>(reader.u8());
  plan.bind = static_cast<base::BindTo>(reader.u8());
  plan.map = static_cast<base::MapBy>(reader.u8());
  plan.here = text();
  const bool known = plan.input <= Input::fed && plan.bind <= base::BindTo::package && plan.map <= base::MapBy::package;
  if (!reader.finished() || !known || plan.words.empty() || plan.count == 0 || plan.count > plan.size ||
      plan.first_rank > plan.size - plan.count || plan.local_size > plan.size || plan.count > plan.local_size ||
      plan.first_local > plan.local_size - plan.count)
    return Error{ErrorCode::malformed, "the launcher's plan does not follow its format"};
  return plan;
}

}  // namespace tandem::tools::wire
