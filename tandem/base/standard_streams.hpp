// tandem/base/standard_streams.hpp: standard streams that were closed when the process started.
#pragma once

namespace tandem::base {

/// Opens /dev/null, for reading only, in place of closed standard streams. Otherwise the next opened file would get the
/// number of the stream, and what is printed to it: a trace or a socket would contain messages of the log. Writes to
/// such a stream fail, as to a closed one. Called before other files are opened.
void hold_standard_streams() noexcept;

}  // namespace tandem::base
