// tandem/base/standard_streams.hpp: standard streams that the process was started without.
#pragma once

namespace tandem::base {

/// Opens /dev/null, for reading only, in place of standard streams that are closed. Otherwise the next file that is opened takes the
/// number of the stream, and gets what is printed to it: a trace or a socket would hold messages of the log. Writes to such a stream
/// fail, as to a closed one. To be called before other files are opened.
void hold_standard_streams() noexcept;

}  // namespace tandem::base
