// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/imagenet_folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/image_folder.h"
#include "io/file_bytes.h"
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

}  // namespace

bool is_imagenet_folder(const fs::path& root) { return fs::is_directory(images_of(root, "train")); }

std::shared_ptr<const data::EncodedDataset> imagenet_folder(const fs::path& root, const std::string& part) {
  WEFT_CHECK(part == "train" || part == "val", "imagenet: expected the part train or val, got ", part);
  if (part == "train") return data::image_folder_root(images_of(root, part), "imagenet train");
  const std::vector<std::string> classes = data::image_folder_classes(images_of(root, "train"));
  const fs::path file = root / "ILSVRC2012_val_labels.json";
  const nlohmann::json labels = read_labels(file);
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(images_of(root, part)))
    if (data::is_image_name(entry.path())) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<int64_t> numbers;
  for (const fs::path& path : paths) {
    const auto found = labels.find(path.filename().string());
    WEFT_CHECK(found != labels.end() && found->is_string(), "imagenet: expected the synset of ",
               path.filename().string(), " in ", file.string(), ", got none");
    const auto synset = found->get<std::string>();
    const auto at = std::lower_bound(classes.begin(), classes.end(), synset);
    WEFT_CHECK(at != classes.end() && *at == synset, "imagenet: expected only synsets of train in ", file.string(),
               ", got ", synset);
    numbers.push_back(at - classes.begin());
  }
  return data::image_files("imagenet val", classes, std::move(paths), std::move(numbers));
}

}  // namespace weft::jsc
