// SPDX-License-Identifier: Apache-2.0
#include "data/packed_pictures.h"

#include <algorithm>

#include "core/crc32c.h"
#include "data/packed_index.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

class PackedPictures : public EncodedDataset {
 public:
  using Pictures = std::vector<PackedIndex::Picture>;

  PackedPictures(std::unique_ptr<FileReader> file, std::string part, std::vector<std::string> classes,
                 Pictures pictures, DecodeOptions decoding)
      : EncodedDataset(str("packed ", file->path(), " ", part), std::move(classes), labels_of(pictures), decoding),
        file_(std::move(file)),
        part_(std::move(part)),
        pictures_(std::move(pictures)) {}

  std::span<const uint8_t> encoded(int64_t index, std::vector<uint8_t>& buffer) const override {
    check_index(index);
    const PackedIndex::Picture& picture = pictures_[index];
    const std::span<uint8_t> bytes = room_in(buffer, picture.bytes);
    file_->read(picture.offset, bytes.data(), bytes.size());
    return bytes;
  }

  void check(int64_t index, std::span<const uint8_t> bytes) const override {
    WEFT_CHECK(crc32c(bytes.data(), bytes.size()) == pictures_[index].crc, "packed: ", origin(index),
               " is damaged: its checksum does not fit");
  }

  std::string origin(int64_t index) const override { return str(file_->path(), " ", part_, " picture ", index); }

 private:
  static std::vector<int64_t> labels_of(const Pictures& pictures) {
    std::vector<int64_t> labels;
    labels.reserve(pictures.size());
    for (const PackedIndex::Picture& picture : pictures) labels.push_back(picture.label);
    return labels;
  }

  std::unique_ptr<FileReader> file_;
  std::string part_;
  Pictures pictures_;
};

}  // namespace

std::shared_ptr<const EncodedDataset> packed_pictures(const std::filesystem::path& path, const std::string& part,
                                                      DecodeOptions decoding) {
  auto file = std::make_unique<FileReader>(path, "packed");
  PackedIndex index = read_packed_index(*file);
  const auto named = [&](const std::string& name) {
    return std::find_if(index.parts.begin(), index.parts.end(), [&](const auto& one) { return one.name == name; });
  };
  auto found = named(part);
  if (found == index.parts.end() && part == "val") found = named("test");
  if (found == index.parts.end()) {
    std::string names;
    for (const PackedIndex::Part& one : index.parts) names += (names.empty() ? "'" : ", '") + one.name + "'";
    file->bad("expected a part '", part, "', got ", names.empty() ? "none" : names);
  }
  return std::make_shared<PackedPictures>(std::move(file), found->name, std::move(index.classes),
                                          std::move(found->pictures), decoding);
}

std::vector<std::string> packed_parts(const std::filesystem::path& path) {
  std::vector<std::string> names;
  for (const PackedIndex::Part& part : read_packed_index(FileReader(path, "packed")).parts) names.push_back(part.name);
  return names;
}

}  // namespace weft::data
