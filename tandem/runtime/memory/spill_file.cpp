// tandem/runtime/memory/spill_file.cpp: places in a file, and the thread that reads and writes them.
#include "tandem/runtime/memory/spill_file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <vector>

#include "tandem/base/assert.hpp"
#include "tandem/base/thread.hpp"
#include "tandem/runtime/memory/extents.hpp"

namespace tandem::runtime {
namespace {

constexpr std::size_t kAlignment = 4096;

/// Disk space that a file may take beyond one and a half times its live data, before it shrinks.
constexpr std::uint64_t kSlack = std::uint64_t{4} << 20;

/// The open file. Pieces of any size come and go, so free extents are merged and used again. The rest returns to the
/// file system: the file is cut at its end, and holes are punched into it where the file system supports that.
///
/// Threads: any, except `write` and `trim`, which only the copier calls, so that a piece is written only after all
/// earlier holes in its place were punched.
class SpillFile {
 public:
  SpillFile(int descriptor, std::string folder) : descriptor_(descriptor), folder_(std::move(folder)) {}
  ~SpillFile() { ::close(descriptor_); }
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  const std::string& folder() const noexcept { return folder_; }

  /// Takes a place, from `kAlignment` on, so that none reads as null.
  std::uintptr_t take(std::size_t bytes) {
    const std::lock_guard guard(mutex_);
    return kAlignment + extents_.take(round_up(bytes));
  }
  void give_back(std::uintptr_t place, std::size_t bytes) {
    const std::lock_guard guard(mutex_);
    extents_.give_back(place - kAlignment, round_up(bytes));
    TANDEM_AUDIT_ASSERT(extents_.check_invariants());
    if (has_slack() && on_slack_) on_slack_();
  }
  /// Sets a function that is called under the file's mutex when `trim` has something to do; empty: none.
  void on_slack(std::function<void()> call) {
    const std::lock_guard guard(mutex_);
    on_slack_ = std::move(call);
  }
  /// Returns disk space, if there is enough of it.
  void trim() {
    std::vector<Extents::Extent> holes;
    std::uint64_t end = 0;
    {
      const std::lock_guard guard(mutex_);
      if (!has_slack()) return;
      holes = extents_.take_holes();
      end = length_ = extents_.end();
    }
    // After an error the file is still correct, and takes more of the disk.
    if (::ftruncate(descriptor_, static_cast<off_t>(end)) != 0) return;
    for (const Extents::Extent& hole : holes)
      if (::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(hole.at),
                      static_cast<off_t>(hole.bytes)) != 0)
        return;
  }

  void write(std::uintptr_t place, const char* from, std::size_t bytes) {
    {
      const std::lock_guard guard(mutex_);
      length_ = std::max<std::uint64_t>(length_, place - kAlignment + bytes);
    }
    transfer("write to", place, bytes,
             [&](std::size_t done, off_t at) { return ::pwrite(descriptor_, from + done, bytes - done, at); });
  }
  void read(std::uintptr_t place, char* to, std::size_t bytes) const {
    transfer("read from", place, bytes,
             [&](std::size_t done, off_t at) { return ::pread(descriptor_, to + done, bytes - done, at); });
  }

 private:
  static std::size_t round_up(std::size_t bytes) noexcept {
    return (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  }

  bool has_slack() const noexcept {
    const std::uint64_t behind_end = length_ > extents_.end() ? length_ - extents_.end() : 0;
    return extents_.disk_bytes() + behind_end > extents_.used() + extents_.used() / 2 + kSlack;
  }

  template <class Part>
  void transfer(const char* what, std::uintptr_t place, std::size_t bytes, const Part& part) const {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t count = part(done, static_cast<off_t>(place - kAlignment + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0)
        throw std::system_error(
            count < 0 ? errno : EIO, std::generic_category(),
            fmt::format("cannot {} the file for data that main memory has no room for, in folder {} (option spill)",
                        what, folder_));
      done += static_cast<std::size_t>(count);
    }
  }

  const int descriptor_;
  const std::string folder_;
  std::mutex mutex_;
  Extents extents_;                 ///< extents of whole pages; under the mutex
  std::uint64_t length_ = 0;        ///< length of the file; under the mutex
  std::function<void()> on_slack_;  ///< under the mutex
};

class SpillNode final : public MemoryNode {
 public:
  explicit SpillNode(std::shared_ptr<SpillFile> file) : file_(std::move(file)) {}
  std::string name() const override { return "the file in " + file_->folder(); }
  void* allocate(std::size_t bytes) override { return reinterpret_cast<void*>(file_->take(bytes)); }
  void release(void* memory, std::size_t bytes) noexcept override {
    file_->give_back(reinterpret_cast<std::uintptr_t>(memory), bytes);
  }

 private:
  std::shared_ptr<SpillFile> file_;
};

/// Copies in the order of requests, on a thread of its own, which sleeps when there is nothing to do. The thread also
/// trims the file, since threads that release places may hold locks, and must not wait for a disk.
class SpillCopier final : public Copier {
 public:
  explicit SpillCopier(std::shared_ptr<SpillFile> file) : file_(std::move(file)), thread_({.name = "tandem-spill"},
                                                                                          [this] { work(); }) {
    file_->on_slack([this] {
      const std::lock_guard guard(mutex_);
      trims_ = true;
      changed_.notify_one();
    });
  }
  ~SpillCopier() override { finish(); }

  CopyState start(const CopyRequest& request, CopyEnded ended) override {
    TANDEM_ASSERT(request.from_node == 0 || request.to_node == 0);
    {
      const std::lock_guard guard(mutex_);
      posted_.push_back({request, std::move(ended)});
    }
    changed_.notify_one();
    return CopyState::posted;
  }

  void finish() noexcept override {
    file_->on_slack({});
    {
      const std::lock_guard guard(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Posted {
    CopyRequest request;
    CopyEnded ended;
  };

  void work() {
    for (;;) {
      Posted next;
      bool trims = false;
      {
        std::unique_lock guard(mutex_);
        changed_.wait(guard, [this] { return stopping_ || trims_ || !posted_.empty(); });
        trims = std::exchange(trims_, false);
        if (!trims) {
          if (posted_.empty()) return;
          next = std::move(posted_.front());
          posted_.pop_front();
        }
      }
      if (trims) {
        file_->trim();
        continue;
      }
      std::exception_ptr failure;
      try {
        copy(next.request);
      } catch (...) {
        failure = std::current_exception();
      }
      next.ended(failure);
    }
  }

  void copy(const CopyRequest& request) const {
    const Shape& shape = request.shape;
    const bool writes = request.from_node == 0;
    const std::size_t ld = writes ? request.from_ld : request.to_ld;
    const bool packed = shape.cols == 1 || ld == shape.rows;
    const std::size_t bytes = shape.rows * shape.element_bytes * (packed ? shape.cols : 1);
    for (std::size_t part = 0; part < (packed ? 1 : shape.cols); ++part) {
      const std::size_t offset = part * ld * shape.element_bytes;
      if (writes)
        file_->write(reinterpret_cast<std::uintptr_t>(request.to) + part * bytes,
                     static_cast<const char*>(request.from) + offset, bytes);
      else
        file_->read(reinterpret_cast<std::uintptr_t>(request.from) + part * bytes,
                    static_cast<char*>(request.to) + offset, bytes);
    }
  }

  std::shared_ptr<SpillFile> file_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Posted> posted_;
  bool trims_ = false;  ///< the file must be trimmed
  bool stopping_ = false;
  base::Thread thread_;  // last: it uses all the others
};

}  // namespace

base::Result<std::pair<std::unique_ptr<MemoryNode>, std::unique_ptr<Copier>>> make_spill_file(
    const std::string& folder) {
  int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {  // the file system has no files without names
    std::string name = folder + "/tandem-spill-XXXXXX";
    descriptor = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor >= 0) ::unlink(name.c_str());
  }
  if (descriptor < 0)
    return base::Error{
        base::ErrorCode::io,
        fmt::format("cannot make a file in {} for data that main memory has no room for: {}; name another "
                    "folder with option spill",
                    folder, std::strerror(errno))};
  auto file = std::make_shared<SpillFile>(descriptor, folder);
  return std::pair<std::unique_ptr<MemoryNode>, std::unique_ptr<Copier>>(std::make_unique<SpillNode>(file),
                                                                         std::make_unique<SpillCopier>(file));
}

}  // namespace tandem::runtime
