// tools/report/columns.cpp: variable-length integers, gzip, base64.
#include "tools/report/columns.hpp"

#include <memory>

#include <archive.h>
#include <archive_entry.h>

namespace tandem::tools {
namespace {

base::Error refused(archive* writer, std::string_view what) {
  const char* const why = writer != nullptr ? archive_error_string(writer) : nullptr;
  return {base::ErrorCode::exhausted, std::string("the tables of a report cannot be ") + std::string(what) + ": " +
                                          (why != nullptr ? why : "no memory")};
}

base::Result<std::string> compressed(std::string_view bytes) {
  struct Free {
    void operator()(archive* writer) const noexcept { archive_write_free(writer); }
    void operator()(archive_entry* entry) const noexcept { archive_entry_free(entry); }
  };
  std::string result;
  const std::unique_ptr<archive, Free> writer(archive_write_new());
  const std::unique_ptr<archive_entry, Free> entry(archive_entry_new());
  if (writer == nullptr || entry == nullptr) return refused(nullptr, "compressed");
  const auto append = [](archive*, void* to, const void* from, std::size_t count) -> la_ssize_t {
    static_cast<std::string*>(to)->append(static_cast<const char*>(from), count);
    return static_cast<la_ssize_t>(count);
  };
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_pathname(entry.get(), "columns");
  // Output without padding to tape blocks, which readers of gzip take for damage.
  if (archive_write_set_format_raw(writer.get()) != ARCHIVE_OK ||
      archive_write_add_filter_gzip(writer.get()) != ARCHIVE_OK ||
      archive_write_set_bytes_in_last_block(writer.get(), 1) != ARCHIVE_OK ||
      archive_write_open(writer.get(), &result, nullptr, append, nullptr) != ARCHIVE_OK ||
      archive_write_header(writer.get(), entry.get()) != ARCHIVE_OK)
    return refused(writer.get(), "compressed");
  while (!bytes.empty()) {
    const la_ssize_t count = archive_write_data(writer.get(), bytes.data(), bytes.size());
    if (count <= 0) return refused(writer.get(), "compressed");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  if (archive_write_close(writer.get()) != ARCHIVE_OK) return refused(writer.get(), "compressed");
  return result;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 3; ++j)
      word = word << 8 | (i + j < bytes.size() ? static_cast<std::uint8_t>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j)
      text.push_back(i + j <= bytes.size() ? letters[word >> (18 - 6 * j) & 63U] : '=');
  }
  return text;
}

}  // namespace

void Columns::add(std::string_view name, std::span<const std::int64_t> values, Coding coding) {
  std::int64_t last = 0;
  const std::size_t begin = bytes_.size();
  for (const std::int64_t value : values) {
    const std::int64_t written = coding == Coding::delta ? value - last : value;
    last = value;
    std::uint64_t rest = static_cast<std::uint64_t>(written) << 1 ^ static_cast<std::uint64_t>(written >> 63);
    for (; rest >= 128; rest >>= 7) bytes_.push_back(static_cast<char>((rest & 127) | 128));
    bytes_.push_back(static_cast<char>(rest));
  }
  index_.push_back({{"name", name}, {"count", values.size()}, {"delta", coding == Coding::delta}, {"at", begin}});
}

base::Result<std::string> Columns::text() const {
  auto packed = compressed(bytes_);
  if (!packed) return packed.error();
  return base64(packed.value());
}

}  // namespace tandem::tools
