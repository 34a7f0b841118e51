// tandem/comm/bootstrap/secret.hpp: where the secret of a job comes from.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/job.hpp"

namespace tandem::comm::internal {

/// Bytes of cryptographic quality.
std::string random_bytes(std::size_t bytes);

/// `bytes` random bytes in hexadecimal digits.
std::string random_name(std::size_t bytes);

/// The secret that a text stands for: a hash of it, blanks at its ends left out. Errors: invalid_argument for less than
/// 16 characters, which could be guessed. `origin` names the text in messages, which never quote it.
base::Result<JobSecret> secret_of_text(std::string_view text, std::string_view origin);

/// Derives another secret. Only a holder of `secret` can do so, and nobody can compute `secret` from the result.
JobSecret derive_secret(const JobSecret& secret, std::string_view purpose);

/// The first line of a file that only its owner may read. Errors: not_found, io; invalid_argument when it belongs to
/// another user or others may read it.
base::Result<JobSecret> secret_of_file(const std::filesystem::path& file);

/// The user's own secret, `folder`/secret. The first process makes it (folder 0700, file 0600). Several processes may
/// do so at once, also over NFS: all get the same. Errors: as secret_of_file.
base::Result<JobSecret> user_secret(const std::filesystem::path& folder);

}  // namespace tandem::comm::internal
