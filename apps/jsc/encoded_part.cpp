// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/encoded_part.h"

#include <algorithm>
#include <filesystem>

#include "apps/jsc/imagenet_folder.h"
#include "data/hdf5_images.h"
#include "data/image_folder.h"
#include "data/packed_images.h"
#include "kernels/error.h"

namespace weft::jsc {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> folder_parts(const fs::path& folder) {
  std::vector<std::string> parts;
  for (const char* part : {"train", "val", "test"})
    if (fs::is_directory(folder / part)) parts.emplace_back(part);
  return parts;
}

}  // namespace

std::string storage_place(const std::string& storage, const std::string& data_root) {
  WEFT_CHECK(fs::exists(data_root), "--data_root: expected images in ", data_root, ", got nothing there");
  if (storage == "fs" || !fs::is_directory(data_root)) return data_root;
  for (const char* name : {"ImageNetFinal.h5", "ImageNet1k.h5", "ImageNet.h5"})
    if (storage == "h5" && fs::exists(fs::path(data_root) / name)) return (fs::path(data_root) / name).string();
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(data_root))
    if (entry.path().extension() == "." + storage && entry.is_regular_file()) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  WEFT_CHECK(!found.empty(), "--data_root: expected a file *.", storage, " in ", data_root,
             ", got none. `pack` writes one");
  WEFT_CHECK(found.size() == 1, "--data_root: expected one file *.", storage, " in ", data_root, ", got ", found.size(),
             ", such as ", found[0], " and ", found[1], ". Name the file");
  return found[0];
}

std::vector<std::string> parts_of(const std::string& storage, const std::string& place) {
  const std::vector<std::string> parts = storage == "h5"             ? data::hdf5_parts(place)
                                         : storage == "packed"       ? data::packed_parts(place)
                                         : is_imagenet_folder(place) ? std::vector<std::string>{"train", "val"}
                                                                     : folder_parts(place);
  WEFT_CHECK(!parts.empty(), "--data_root: expected train, val or test in ", place, ", got none of them");
  return parts;
}

std::shared_ptr<const data::EncodedDataset> open_part(const std::string& storage, const std::string& place,
                                                      const std::string& part) {
  if (storage == "h5") return data::hdf5_images(place, part);
  if (storage == "packed") return data::packed_images(place, part);
  if (is_imagenet_folder(place)) return imagenet_folder(place, part);
  const fs::path folder = fs::path(place) / part;
  std::vector<std::string> classes;
  if (part != "train" && fs::is_directory(fs::path(place) / "train"))
    classes = data::image_folder_classes(fs::path(place) / "train");
  return data::image_folder_root(folder, "folder " + part, std::move(classes));
}

}  // namespace weft::jsc
