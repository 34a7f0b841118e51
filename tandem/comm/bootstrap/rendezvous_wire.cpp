// tandem/comm/bootstrap/rendezvous_wire.cpp: the frames' bodies.
#include "tandem/comm/bootstrap/rendezvous_wire.hpp"

#include <tuple>

#include <fmt/core.h>

#include "tandem/comm/bootstrap/bytes.hpp"
#include "tandem/comm/bootstrap/proof.hpp"
#include "tandem/comm/bootstrap/secret.hpp"

namespace tandem::comm::internal::rendezvous {

using base::Error;
using base::ErrorCode;
using base::Result;

std::string Hello::encode() const {
  return ByteWriter().u32(magic).u32(rendezvous_version).text(tandem_version).u32(rank).u32(size).raw(nonce).take();
}

Result<Hello> Hello::decode(std::string_view body) {
  ByteReader reader(body);
  const bool greets = reader.u32() == magic;
  Hello hello;
  hello.rendezvous_version = reader.u32();
  hello.tandem_version = reader.text(64);
  if (!greets || !reader.ok()) return Error{ErrorCode::malformed, "it is no greeting of Tandem"};
  if (hello.rendezvous_version != version) return hello;
  hello.rank = reader.u32();
  hello.size = reader.u32();
  hello.nonce = reader.raw(std::tuple_size_v<Nonce>);
  if (!reader.finished()) return Error{ErrorCode::malformed, "its greeting does not follow the format"};
  return hello;
}

std::string Membership::encode() const { return ByteWriter().text(job_id).u32(generation).take(); }

Result<Membership> Membership::decode(std::string_view body) {
  ByteReader reader(body);
  Membership membership;
  membership.job_id = reader.text(64);
  membership.generation = reader.u32();
  if (!reader.finished()) return Error{ErrorCode::malformed, "the welcome does not follow its format"};
  return membership;
}

JobSecret Membership::secret(const JobSecret& rendezvous_secret) const {
  return derive_secret(rendezvous_secret, "tandem ranks " + encode());
}

std::string Membership::name() const { return generation == 0 ? job_id : fmt::format("{}.{}", job_id, generation); }

std::string describe(std::string_view tandem_version, std::uint32_t rendezvous_version) {
  return fmt::format("Tandem {} (rendezvous format {})", tandem_version, rendezvous_version);
}

std::string_view own_version() { return TANDEM_VERSION; }

}  // namespace tandem::comm::internal::rendezvous
