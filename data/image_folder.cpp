// SPDX-License-Identifier: Apache-2.0
#include "data/image_folder.h"

#include <algorithm>

#include "core/text.h"
#include "io/file_reader.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

bool hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::vector<fs::path> images_below(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  fs::path last = folder;  // where an error arises: the iterator forgets it
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    last = entry->path();
    if (is_image_name(last) && entry->is_regular_file()) found.push_back(last);
  }
  WEFT_CHECK(!error, "folder: expected to read ", printable(last.string()), ", got '", error.message(), "'");
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return found;
}

class ImageFolder : public EncodedDataset {
 public:
  ImageFolder(std::string title, std::vector<std::string> classes, std::vector<fs::path> paths,
              std::vector<int64_t> labels, DecodeOptions decoding)
      : EncodedDataset(std::move(title), std::move(classes), std::move(labels), decoding), paths_(std::move(paths)) {}

  std::span<const uint8_t> encoded(int64_t index, std::vector<uint8_t>& buffer) const override {
    check_index(index);
    const FileReader file(paths_[index], "folder");
    const std::span<uint8_t> bytes = room_in(buffer, file.size());
    file.read(0, bytes.data(), bytes.size());
    return bytes;
  }

  std::string origin(int64_t index) const override { return paths_.at(index).string(); }

 private:
  std::vector<fs::path> paths_;
};

/// The first of `names` that is a folder in `directory`; empty where none is.
fs::path first_folder(const fs::path& directory, std::initializer_list<const char*> names) {
  for (const char* folder : names)
    if (fs::is_directory(directory / folder)) return directory / folder;
  return {};
}

void check_classes(const fs::path& root, const std::vector<std::string>& got,
                   const std::vector<std::string>& expected) {
  for (const std::string& one : got)
    WEFT_CHECK(std::binary_search(expected.begin(), expected.end(), one), "folder: expected in ", root.string(),
               " only classes of the train part, got the new class '", printable(one), "'");
  for (const std::string& one : expected)
    WEFT_CHECK(std::binary_search(got.begin(), got.end(), one), "folder: expected in ", root.string(),
               " every class of the train part, '", printable(one), "' is missing");
}

}  // namespace

bool is_image_name(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return !hidden(path) && (extension == ".jpg" || extension == ".jpeg" || extension == ".png");
}

std::vector<std::string> image_folder_classes(const fs::path& root) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(root))
    if (entry.is_directory() && !hidden(entry.path())) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::shared_ptr<const EncodedDataset> image_files(const std::string& title, std::vector<std::string> classes,
                                                  std::vector<fs::path> paths, std::vector<int64_t> labels,
                                                  DecodeOptions decoding) {
  WEFT_CHECK(paths.size() == labels.size(), title, ": expected a label for each of ", paths.size(), " images, got ",
             labels.size());
  return std::make_shared<ImageFolder>(title, std::move(classes), std::move(paths), std::move(labels), decoding);
}

std::shared_ptr<const EncodedDataset> image_folder_root(const fs::path& root, const std::string& title,
                                                        std::vector<std::string> expected_classes,
                                                        DecodeOptions decoding) {
  WEFT_CHECK(fs::is_directory(root), "folder: expected a folder with one folder per class, got ", root.string(),
             fs::exists(root) ? ", which is a file" : ", which does not exist");
  std::vector<std::string> classes = image_folder_classes(root);
  WEFT_CHECK(!classes.empty(), "folder: expected one folder per class in ", root.string(), ", got none");
  if (!expected_classes.empty()) check_classes(root, classes, expected_classes);
  std::vector<fs::path> paths;
  std::vector<int64_t> labels;
  for (size_t c = 0; c < classes.size(); ++c) {
    const std::vector<fs::path> images = images_below(root / classes[c]);
    WEFT_CHECK(!images.empty(), "folder: expected .jpg, .jpeg or .png images in ",
               printable((root / classes[c]).string()), ", got none. Add some, or remove the class.");
    paths.insert(paths.end(), images.begin(), images.end());
    labels.insert(labels.end(), images.size(), static_cast<int64_t>(c));
  }
  return image_files(title, std::move(classes), std::move(paths), std::move(labels), decoding);
}

std::shared_ptr<const EncodedDataset> image_folder(const fs::path& directory, Split split, DecodeOptions decoding) {
  WEFT_CHECK(fs::is_directory(directory), "folder: expected a folder, got ", directory.string(),
             fs::exists(directory) ? ", which is a file" : ", which does not exist");
  const fs::path train = first_folder(directory, {"train"});
  const fs::path root = split == Split::train ? train : first_folder(directory, {"val", "test"});
  WEFT_CHECK(!root.empty(), "folder: expected ", split == Split::train ? "train" : "val or test", " in ",
             directory.string(), ", got no such folder. The layout is DIR/{train,val}/CLASS/*.jpg");
  std::vector<std::string> expected;
  if (split == Split::val && !train.empty()) expected = image_folder_classes(train);
  return image_folder_root(root, str("folder ", name(split)), std::move(expected), decoding);
}

}  // namespace weft::data
