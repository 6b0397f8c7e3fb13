// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "data/image_writer.h"
#include "data/packed_index.h"
#include "data/part_count.h"
#include "io/atomic_file.h"
#include "io/crc32c.h"

namespace weft::data {
namespace {

/// Writes the images as they come, then the index, then the header into the space kept for it.
class PackedWriter final : public ImageWriter {
 public:
  PackedWriter(const std::filesystem::path& path, std::vector<std::string> classes)
      : file_(path, "packed"), count_("packed", classes), out_(file_) {
    index_.classes = std::move(classes);
    const std::array<char, kPackedHeaderBytes> room{};
    out_.write(room.data(), room.size());
  }

  void begin_part(const std::string& name, int64_t count) override {
    count_.begin_part(name, count);
    index_.parts.push_back({name, {}});
  }

  void add(std::span<const uint8_t> bytes, int64_t label) override {
    count_.add(bytes, label);
    out_.write(bytes.data(), bytes.size());
    index_.parts.back().images.push_back({offset_, static_cast<uint32_t>(bytes.size()),
                                          crc32c(bytes.data(), bytes.size()), static_cast<uint32_t>(label)});
    offset_ += bytes.size();
  }

  void commit() override {
    count_.finish();
    const std::string index = packed_index_text(index_);
    out_.write(index.data(), index.size());
    out_.close();
    const auto header = packed_header(offset_, index);
    const int fd = ::open(file_.temporary().c_str(), O_WRONLY | O_CLOEXEC);
    const bool written = fd >= 0 && ::pwrite(fd, header.data(), header.size(), 0) == ssize_t{kPackedHeaderBytes};
    const int reason = errno;
    if (fd >= 0) ::close(fd);
    if (!written) file_.fail_write(reason);
    file_.commit();
  }

 private:
  AtomicFile file_;
  PartCount count_;
  AtomicFile::Writer out_;
  PackedIndex index_;
  uint64_t offset_ = kPackedHeaderBytes;
};

}  // namespace

std::unique_ptr<ImageWriter> packed_writer(const std::filesystem::path& path, std::vector<std::string> classes) {
  return std::make_unique<PackedWriter>(path, std::move(classes));
}

}  // namespace weft::data
