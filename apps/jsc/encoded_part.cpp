// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/encoded_part.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "data/hdf5_images.h"
#include "data/image_folder.h"
#include "data/packed_images.h"
#include "io/file_reader.h"
#include "kernels/error.h"

namespace weft::jsc {
namespace {

namespace fs = std::filesystem;

fs::path images_of(const fs::path& root, const std::string& part) { return root / "ILSVRC/Data/CLS-LOC" / part; }

nlohmann::json read_labels(const fs::path& file) {
  WEFT_CHECK(fs::exists(file), "imagenet: expected the labels of val in ", file.string(), ", got no such file");
  nlohmann::json labels = nlohmann::json::parse(read_text(file, "imagenet"), nullptr, false);
  WEFT_CHECK(labels.is_object(), "imagenet: expected {\"FILE\": \"SYNSET\", …} in ", file.string(),
             ", got something else");
  return labels;
}

bool is_imagenet_folder(const fs::path& root) { return fs::is_directory(images_of(root, "train")); }

/// `train` or `val`; classes are the synsets in byte order, which is the order of the published class numbers.
std::shared_ptr<const data::EncodedDataset> imagenet_folder(const fs::path& root, const std::string& part) {
  WEFT_CHECK(part == "train" || part == "val", "imagenet: expected the part train or val, got ", part);
  if (part == "train") return data::image_folder_root(images_of(root, part), "imagenet train");
  const std::vector<std::string> classes = data::image_folder_classes(images_of(root, "train"));
  const fs::path file = root / "ILSVRC2012_val_labels.json";
  const nlohmann::json labels = read_labels(file);
  std::vector<fs::path> paths = data::images_in(images_of(root, part));
  std::vector<int64_t> numbers;
  for (const fs::path& path : paths) {
    const auto found = labels.find(path.filename().string());
    WEFT_CHECK(found != labels.end() && found->is_string(), "imagenet: expected the synset of ",
               printable(path.filename().string()), " in ", file.string(), ", got none");
    const auto synset = found->get<std::string>();
    const auto at = std::lower_bound(classes.begin(), classes.end(), synset);
    WEFT_CHECK(at != classes.end() && *at == synset, "imagenet: expected only synsets of train in ", file.string(),
               ", got ", printable(synset));
    numbers.push_back(at - classes.begin());
  }
  return data::image_files("imagenet val", classes, std::move(paths), std::move(numbers));
}

std::vector<std::string> folder_parts(const fs::path& folder) {
  std::vector<std::string> parts;
  for (const auto& [part, path] : data::image_folder_parts(folder)) parts.push_back(part);
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
    if (entry.path().extension() == "." + storage && !data::is_hidden(entry.path()) && entry.is_regular_file())
      found.push_back(entry.path().string());
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
  fs::path folder = fs::path(place) / part;
  std::vector<std::string> classes;
  for (const auto& [name, path] : data::image_folder_parts(place)) {
    if (name == part) folder = path;
    if (name == "train" && part != "train") classes = data::image_folder_classes(path);
  }
  return data::image_folder_root(folder, "folder " + part, std::move(classes));
}

}  // namespace weft::jsc
