// tandem/comm/bootstrap/secret_descriptor.hpp: a secret text in a nameless file that child processes inherit.
#pragma once

#include <string>
#include <string_view>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/socket.hpp"

namespace tandem::comm::internal {

/// A sealed file in memory that holds `text`, under a descriptor number that shells do not use themselves: 100 or
/// above, or, below a low limit of descriptors, from half of it. Closed by exec(); a child that is to have it clears
/// that flag. May be read any number of times, also through wrapper programs, as long as they leave descriptors open.
/// Errors: io.
base::Result<base::FileDescriptor> make_secret_descriptor(std::string_view text);

/// Reads the text of such a descriptor. Errors: invalid_argument when the descriptor is closed or is something else.
base::Result<std::string> read_secret_descriptor(int descriptor);

}  // namespace tandem::comm::internal
