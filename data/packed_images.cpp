// SPDX-License-Identifier: Apache-2.0
#include "data/packed_images.h"

#include <algorithm>

#include "data/packed_index.h"
#include "io/crc32c.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

class PackedImages : public EncodedDataset {
 public:
  using Images = std::vector<PackedIndex::Image>;

  PackedImages(std::unique_ptr<FileReader> file, std::string part, std::vector<std::string> classes,
                 Images images, DecodeOptions decoding)
      : EncodedDataset(str("packed ", file->path(), " ", part), std::move(classes), labels_of(images), decoding),
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
    WEFT_CHECK(crc32c(bytes.data(), bytes.size()) == images_[index].crc, "packed: ", origin(index),
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
  auto found = named(part);
  if (found == index.parts.end() && part == "val") found = named("test");
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

}  // namespace weft::data
