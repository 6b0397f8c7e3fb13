// SPDX-License-Identifier: Apache-2.0
#include "data/packed_images.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/text.h"
#include "data/image_writer.h"
#include "io/atomic_file.h"
#include "io/crc32c.h"
#include "io/file_kind.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

static_assert(std::endian::native == std::endian::little, "packed files are little-endian");

constexpr char kMagic[] = "WEFTPACK";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kImageBytes = 24;
constexpr uint32_t kMostNames = 1 << 20, kLongestName = 4096;

/// A packed file's own description.
struct PackedIndex {
  struct Image {
    uint64_t offset = 0;
    uint32_t bytes = 0, crc = 0, label = 0;
  };
  struct Part {
    std::string name;
    std::vector<Image> images;
  };
  std::vector<std::string> classes;
  std::vector<Part> parts;
};

template <class T>
T at(const char* bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

template <class T>
void put(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The index, front to back; an end that comes too early is damage.
class Cursor {
 public:
  Cursor(const FileReader& file, const std::vector<char>& bytes) : file_(file), bytes_(bytes) {}

  template <class T>
  T take(const char* what) {
    need(sizeof(T), what);
    const T value = at<T>(bytes_.data(), next_);
    next_ += sizeof(T);
    return value;
  }

  std::string take_name(const char* what) {
    const auto length = take<uint32_t>(what);
    if (length == 0 || length > kLongestName)
      file_.bad("expected a name of 1 to ", kLongestName, " bytes for ", what, ", got ", length);
    need(length, what);
    const std::string name(bytes_.data() + next_, length);
    next_ += length;
    return name;
  }

  uint64_t left() const { return bytes_.size() - next_; }

  void need(uint64_t bytes, const char* what) const {
    if (left() < bytes) file_.bad("damaged: the index ends within ", what);
  }

 private:
  const FileReader& file_;
  const std::vector<char>& bytes_;
  size_t next_ = 0;
};

PackedIndex::Image take_image(const FileReader& file, Cursor& cursor, uint64_t index_offset, size_t classes) {
  PackedIndex::Image image;
  image.offset = cursor.take<uint64_t>("an image");
  image.bytes = cursor.take<uint32_t>("an image");
  image.crc = cursor.take<uint32_t>("an image");
  image.label = cursor.take<uint32_t>("an image");
  cursor.take<uint32_t>("an image");
  if (image.bytes == 0 || image.offset < kPackedHeaderBytes || image.offset > index_offset ||
      image.bytes > index_offset - image.offset)
    file.bad("expected an image between bytes ", kPackedHeaderBytes, " and ", index_offset, ", got ", image.bytes,
             " bytes at ", image.offset);
  if (image.label >= classes) file.bad("expected labels below ", classes, ", got ", image.label);
  return image;
}

void require_unique(const FileReader& file, std::vector<std::string> names, const char* what) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) file.bad("expected each ", what, " once, got '", *twice, "' twice");
}

PackedIndex read_packed_index(const FileReader& file) {
  char header[kPackedHeaderBytes] = {};
  file.read(0, header, std::min<uint64_t>(file.size(), kPackedHeaderBytes));
  if (std::memcmp(header, kMagic, 8) != 0) refuse(file, "a packed file (it begins with WEFTPACK)", "another");
  const auto version = at<uint32_t>(header, 8);
  if (file.size() < kPackedHeaderBytes || at<uint32_t>(header, 60) != crc32c(header, 60))
    file.bad("damaged: the header's checksum does not fit");
  if (version != kVersion)
    file.bad("expected version ", kVersion, ", got ", version, ", which a newer Weft has written");
  const auto bytes = at<uint64_t>(header, 16), offset = at<uint64_t>(header, 24), length = at<uint64_t>(header, 32);
  if (bytes != file.size()) file.bad("expected ", bytes, " bytes, got ", file.size(), ". Is it cut short?");
  if (offset < kPackedHeaderBytes || offset > bytes || length != bytes - offset)
    file.bad("expected an index up to the end, byte ", bytes, ", got ", length, " bytes at ", offset);
  std::vector<char> text(length);
  file.read(offset, text.data(), length);
  if (crc32c(text.data(), length) != at<uint32_t>(header, 40)) file.bad("damaged: the index's checksum does not fit");

  Cursor cursor(file, text);
  PackedIndex index;
  const auto classes = cursor.take<uint32_t>("the classes");
  if (classes == 0 || classes > kMostNames) file.bad("expected 1 to ", kMostNames, " classes, got ", classes);
  for (uint32_t c = 0; c < classes; ++c) index.classes.push_back(cursor.take_name("a class"));
  require_unique(file, index.classes, "class");
  std::vector<std::string> names;
  const auto parts = cursor.take<uint32_t>("the parts");
  for (uint32_t p = 0; p < parts; ++p) {
    PackedIndex::Part part;
    part.name = cursor.take_name("a part");
    const auto images = cursor.take<uint64_t>("a part");
    if (images > cursor.left() / kImageBytes) file.bad("damaged: the index ends within part '", part.name, "'");
    part.images.reserve(images);
    for (uint64_t i = 0; i < images; ++i) part.images.push_back(take_image(file, cursor, offset, index.classes.size()));
    names.push_back(part.name);
    index.parts.push_back(std::move(part));
  }
  require_unique(file, names, "part");
  if (cursor.left() > 0) file.bad("damaged: ", cursor.left(), " bytes follow the index");
  return index;
}

/// The index, which follows the images.
std::string packed_index_text(const PackedIndex& index) {
  std::string text;
  const auto put_name = [&](const std::string& name) {
    put(text, static_cast<uint32_t>(name.size()));
    text += name;
  };
  put(text, static_cast<uint32_t>(index.classes.size()));
  for (const std::string& name : index.classes) put_name(name);
  put(text, static_cast<uint32_t>(index.parts.size()));
  for (const PackedIndex::Part& part : index.parts) {
    put_name(part.name);
    put(text, static_cast<uint64_t>(part.images.size()));
    for (const PackedIndex::Image& image : part.images) {
      put(text, image.offset);
      for (const uint32_t value : {image.bytes, image.crc, image.label, uint32_t{0}}) put(text, value);
    }
  }
  return text;
}

/// The header of a file whose index, this one, begins at `offset`.
std::array<char, kPackedHeaderBytes> packed_header(uint64_t offset, const std::string& index) {
  std::string text = kMagic;
  put(text, kVersion);
  put(text, uint32_t{0});
  put(text, uint64_t{offset + index.size()});
  put(text, offset);
  put(text, uint64_t{index.size()});
  put(text, crc32c(index.data(), index.size()));
  text.resize(kPackedHeaderBytes - sizeof(uint32_t));
  put(text, crc32c(text.data(), text.size()));
  std::array<char, kPackedHeaderBytes> header;
  std::copy(text.begin(), text.end(), header.begin());
  return header;
}

class PackedImages : public EncodedDataset {
 public:
  using Images = std::vector<PackedIndex::Image>;

  PackedImages(std::unique_ptr<FileReader> file, std::string part, std::vector<std::string> classes, Images images,
               DecodeOptions decoding)
      : EncodedDataset(printable(str("packed ", file->path(), " ", part)), std::move(classes), labels_of(images),
                       decoding),
        file_(std::move(file)),
        part_(std::move(part)),
        images_(std::move(images)) {}

  std::span<const uint8_t> encoded(int64_t index, std::vector<uint8_t>& buffer) const override {
    check_index(index);
    const PackedIndex::Image& image = images_[index];
    const std::span<uint8_t> bytes = room_in(buffer, image.bytes);
    file_->read(image.offset, bytes.data(), bytes.size());
    return bytes;
  }

  void check(int64_t index, std::span<const uint8_t> bytes) const override {
    WEFT_CHECK(crc32c(bytes.data(), bytes.size()) == images_[index].crc, "packed: ", printable(origin(index)),
               " is damaged: its checksum does not fit");
  }

  std::string origin(int64_t index) const override { return str(file_->path(), " ", part_, " image ", index); }

 private:
  static std::vector<int64_t> labels_of(const Images& images) {
    std::vector<int64_t> labels;
    labels.reserve(images.size());
    for (const PackedIndex::Image& image : images) labels.push_back(image.label);
    return labels;
  }

  std::unique_ptr<FileReader> file_;
  std::string part_;
  Images images_;
};

}  // namespace

std::shared_ptr<const EncodedDataset> packed_images(const std::filesystem::path& path, const std::string& part,
                                                    DecodeOptions decoding) {
  auto file = std::make_unique<FileReader>(path, "packed");
  PackedIndex index = read_packed_index(*file);
  const auto named = [&](const std::string& name) {
    return std::find_if(index.parts.begin(), index.parts.end(), [&](const auto& one) { return one.name == name; });
  };
  const auto found = named(part);
  if (found == index.parts.end()) {
    std::string names;
    for (const PackedIndex::Part& one : index.parts) names += (names.empty() ? "'" : ", '") + one.name + "'";
    file->bad("expected a part '", part, "', got ", names.empty() ? "none" : names);
  }
  return std::make_shared<PackedImages>(std::move(file), found->name, std::move(index.classes),
                                        std::move(found->images), decoding);
}

std::vector<std::string> packed_parts(const std::filesystem::path& path) {
  std::vector<std::string> names;
  for (const PackedIndex::Part& part : read_packed_index(FileReader(path, "packed")).parts) names.push_back(part.name);
  return names;
}

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
