// tools/out_file.hpp: a file that is written sequentially through a buffer; its errors are reported at the end.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/result.hpp"

namespace tandem::tools {

class OutFile {
 public:
  /// Creates the file. Errors: io.
  static base::Result<OutFile> create(const std::filesystem::path& path) {
    OutFile file;
    file.path_ = path;
    file.file_ = std::fopen(path.c_str(), "wbe");
    if (file.file_ == nullptr)
      return base::Error{base::ErrorCode::io, path.string() + ": cannot be written: " + std::strerror(errno)};
    return file;
  }
  OutFile(OutFile&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, nullptr)), buffer_(std::move(other.buffer_)),
        bytes_(other.bytes_), error_(other.error_) {}
  OutFile& operator=(OutFile&&) = delete;
  ~OutFile() {
    if (file_ != nullptr) std::fclose(file_);
  }

  template <class... Values>
  void print(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Values>(values)...);
    flush_when_full();
  }
  void write(std::string_view bytes) {
    buffer_.append(bytes.data(), bytes.data() + bytes.size());
    flush_when_full();
  }
  template <class Number>
  void put(Number number) {
    write({reinterpret_cast<const char*>(&number), sizeof number});
  }
  std::uint64_t bytes() const noexcept { return bytes_ + buffer_.size(); }

  /// Closes the file. Errors: io, the first one since it was created.
  base::Result<void> close() {
    flush();
    if (std::fclose(std::exchange(file_, nullptr)) != 0 && error_ == 0) error_ = errno;
    if (error_ == 0) return {};
    return base::Error{base::ErrorCode::io, path_.string() + ": cannot be written: " + std::strerror(error_)};
  }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

  OutFile() = default;
  void flush_when_full() {
    if (buffer_.size() >= buffer_bytes) flush();
  }
  void flush() {
    if (error_ == 0 && std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size())
      error_ = errno != 0 ? errno : EIO;
    bytes_ += buffer_.size();
    buffer_.clear();
  }

  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
  fmt::memory_buffer buffer_;
  std::uint64_t bytes_ = 0;
  int error_ = 0;
};

}  // namespace tandem::tools
