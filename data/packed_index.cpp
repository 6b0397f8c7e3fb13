// SPDX-License-Identifier: Apache-2.0
#include "data/packed_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "io/crc32c.h"

namespace weft::data {
namespace {

static_assert(std::endian::native == std::endian::little, "packed files are little-endian");

constexpr char kMagic[] = "WEFTPACK";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kImageBytes = 24;
constexpr uint32_t kMostNames = 1 << 20, kLongestName = 4096;

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

}  // namespace

PackedIndex read_packed_index(const FileReader& file) {
  char header[kPackedHeaderBytes] = {};
  file.read(0, header, std::min<uint64_t>(file.size(), kPackedHeaderBytes));
  if (std::memcmp(header, kMagic, 8) != 0) file.bad("expected a packed file (it begins with WEFTPACK), got another");
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

}  // namespace weft::data
