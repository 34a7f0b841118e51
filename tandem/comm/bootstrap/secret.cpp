// tandem/comm/bootstrap/secret.cpp: files that only their owner reads, and libsodium's hashes.
#include "tandem/comm/bootstrap/secret.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>
#include <sodium.h>

#include "tandem/base/assert.hpp"
#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/owned_file.hpp"

namespace tandem::comm::internal {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::size_t fewest_characters = 16;
constexpr std::size_t most_file_bytes = 4096;

static_assert(crypto_generichash_BYTES == std::tuple_size_v<JobSecret>);

/// Initialises libsodium. Further calls, from any thread, do nothing.
void prepare_sodium() { TANDEM_ASSERT(sodium_init() >= 0); }

const unsigned char* bytes_at(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
const unsigned char* key_of(const JobSecret& secret) { return reinterpret_cast<const unsigned char*>(secret.data()); }

Error file_error(const std::filesystem::path& file, std::string_view what) {
  const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  return {code, fmt::format("the secret file {} {}: {}", file.string(), what, base::system_error_text(errno))};
}

/// Why this file may not hold a secret; empty when it may.
std::string objection(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "is no ordinary file";
  if (status.st_uid != geteuid()) return "belongs to another user";
  if ((status.st_mode & 077) != 0)
    return fmt::format("may be read by others (mode {:03o}): give it mode 600, and another content",
                       status.st_mode & 0777);
  return {};
}

Result<JobSecret> read_secret(int descriptor, const std::filesystem::path& file) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return file_error(file, "cannot be examined");
  if (const std::string why = objection(status); !why.empty())
    return Error{ErrorCode::invalid_argument, fmt::format("the secret file {} {}", file.string(), why)};
  char buffer[most_file_bytes];
  const ssize_t count = read(descriptor, buffer, sizeof buffer);
  if (count < 0) return file_error(file, "cannot be read");
  const std::string_view text(buffer, static_cast<std::size_t>(count));
  const auto secret = secret_of_text(text.substr(0, text.find('\n')), fmt::format("the file {}", file.string()));
  sodium_memzero(buffer, sizeof buffer);
  return secret;
}

/// Writes a new secret beside `file` and links it there. The link fails when another process made one first, which is
/// as good.
Result<void> create_secret(const std::filesystem::path& file) {
  const std::filesystem::path draft = file.string() + "." + random_name(8);
  base::FileDescriptor descriptor(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!descriptor) return file_error(file, "cannot be created");
  const std::string line = random_name(32) + "\n";
  const bool written = write(descriptor.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
                       fsync(descriptor.get()) == 0;
  descriptor.close();
  const bool linked = written && (link(draft.c_str(), file.c_str()) == 0 || errno == EEXIST);
  const int reason = errno;
  unlink(draft.c_str());
  errno = reason;
  if (!linked) return file_error(file, "cannot be written");
  return {};
}

}  // namespace

std::string random_bytes(std::size_t bytes) {
  prepare_sodium();
  std::string random(bytes, '\0');
  randombytes_buf(random.data(), random.size());
  return random;
}

std::string random_name(std::size_t bytes) {
  std::string name;
  for (const char byte : random_bytes(bytes)) name += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return name;
}

Result<JobSecret> secret_of_text(std::string_view text, std::string_view origin) {
  prepare_sodium();
  constexpr std::string_view blanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  text = text.substr(0, text.find_last_not_of(blanks) + 1);
  if (text.size() < fewest_characters) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format(
            "{} holds a secret of {} characters, which is too short: give at least {}, for instance of `openssl "
            "rand -hex 32`",
            origin, text.size(), fewest_characters)};
  }
  JobSecret secret;
  crypto_generichash(reinterpret_cast<unsigned char*>(secret.data()), secret.size(), bytes_at(text), text.size(),
                     nullptr, 0);
  return secret;
}

JobSecret derive_secret(const JobSecret& secret, std::string_view purpose) {
  prepare_sodium();
  JobSecret derived;
  crypto_generichash(reinterpret_cast<unsigned char*>(derived.data()), derived.size(), bytes_at(purpose),
                     purpose.size(), key_of(secret), secret.size());
  return derived;
}

Result<JobSecret> secret_of_file(const std::filesystem::path& file) {
  const base::FileDescriptor descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor) return file_error(file, "cannot be opened");
  return read_secret(descriptor.get(), file);
}

Result<JobSecret> user_secret(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "secret";
  auto secret = secret_of_file(file);
  if (secret || secret.error().code != ErrorCode::not_found) return secret;
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return file_error(file, "cannot be created");
  if (const auto own = base::OwnedFolder::open(folder, base::Owners::self); !own) return own.error();
  if (auto created = create_secret(file); !created) return created.error();
  return secret_of_file(file);
}

}  // namespace tandem::comm::internal
