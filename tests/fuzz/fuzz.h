// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/error.h"
#include "tests/support/temporary_folder.h"

/// Every target defines this function: reads one input. libFuzzer calls it, and so does replay.cpp.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace weft::fuzz {

/// Takes an input apart, front to back; an input that is used up reads as zeros.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  bool empty() const { return at_ == end_; }
  uint8_t byte() { return empty() ? 0 : *at_++; }
  size_t word() {
    const size_t low = byte();
    return low | static_cast<size_t>(byte()) << 8;
  }
  /// At most `count` bytes, as many as there are.
  std::vector<uint8_t> take(size_t count) {
    count = std::min(count, static_cast<size_t>(end_ - at_));
    std::vector<uint8_t> bytes(at_, at_ + count);
    at_ += count;
    return bytes;
  }
  std::vector<uint8_t> rest() { return take(static_cast<size_t>(end_ - at_)); }
  /// The rest, or the next `count` bytes.
  std::string text(size_t count = SIZE_MAX) {
    const std::vector<uint8_t> bytes = take(count);
    return {bytes.begin(), bytes.end()};
  }

 private:
  const uint8_t *at_, *end_;
};

/// Bytes that end where memory ends: a reader that goes on is killed, without a sanitizer, too.
class AtTheEdge {
 public:
  explicit AtTheEdge(const std::vector<uint8_t>& bytes)
      : size_(bytes.size()), pages_((size_ + kPage - 1) / kPage * kPage) {
    void* const place = ::mmap(nullptr, pages_ + kBeyond, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED || ::mprotect(place, pages_, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = static_cast<uint8_t*>(place) + pages_ - size_;
    std::copy(bytes.begin(), bytes.end(), data_);
  }
  AtTheEdge(const AtTheEdge&) = delete;
  AtTheEdge& operator=(const AtTheEdge&) = delete;
  ~AtTheEdge() { ::munmap(data_ + size_ - pages_, pages_ + kBeyond); }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kPage = 65536, kBeyond = size_t{1} << 26;  // address space; pages are 4 to 64 KiB
  const size_t size_, pages_;
  uint8_t* data_;
};

/// A folder for the files of one input, in memory where the system has such a place; it goes with the process.
class Folder : public tests::TemporaryFolderOf<std::filesystem::path> {
 public:
  Folder() : TemporaryFolderOf(in_memory()) {}

  /// Writes a file of this folder and returns its path.
  std::filesystem::path write(const std::string& name, const std::vector<uint8_t>& bytes) const {
    const std::filesystem::path file = path() / name;
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool written = fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (fd >= 0) ::close(fd);
    WEFT_CHECK(written, "fuzz: cannot write ", file.string());
    return file;
  }
  void remove(const std::string& name) const { ::unlink((path() / name).c_str()); }

 private:
  static std::filesystem::path in_memory() {
    const std::filesystem::path memory = "/dev/shm";
    return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
  }
};

/// A message to the user must be one line: all else ends the process, as a finding.
inline void expect_one_line(const std::string& text) {
  const bool one_line =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
  if (one_line) return;
  std::fprintf(stderr, "not one line of text:\n%s\n", text.c_str());
  std::abort();
}

/// Runs a reader. A weft::Error of one line is its only way to refuse; all else ends the process, as a finding.
template <class Body>
void expect_value_or_error(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    if (*error.what() == '\0') std::abort();
    expect_one_line(error.what());
  }
}

/// For readers that say what is wrong on stderr: their words go nowhere, those of sanitizers and of libFuzzer stay.
inline void quiet() {
  static std::FILE* const nowhere = stderr = std::fopen("/dev/null", "w");
  static_cast<void>(nowhere);
}

}  // namespace weft::fuzz
