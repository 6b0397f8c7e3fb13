// SPDX-License-Identifier: Apache-2.0
#include "data/image_folder.h"

#include <algorithm>

#include "data/file_bytes.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

bool hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool is_picture(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return !hidden(path) && (extension == ".jpg" || extension == ".jpeg" || extension == ".png");
}

std::vector<std::string> class_folders(const fs::path& root) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(root))
    if (entry.is_directory() && !hidden(entry.path())) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<fs::path> pictures_below(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (is_picture(entry.path()) && entry.is_regular_file()) found.push_back(entry.path());
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return found;
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(std::string title, std::vector<std::string> classes, DecodeOptions decoding)
      : title_(std::move(title)), classes_(std::move(classes)), decoding_(decoding) {}

  void add(std::vector<fs::path> paths, int64_t label) {
    for (fs::path& path : paths) {
      paths_.push_back(std::move(path));
      labels_.push_back(label);
    }
  }

  int64_t size() const override { return static_cast<int64_t>(paths_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t channels() const override { return 3; }

  Picture get(int64_t index) const override {
    WEFT_CHECK(index >= 0 && index < size(), title_, ": expected an index below ", size(), ", got ", index);
    Picture picture = decode(read_file(paths_[index]), paths_[index].string(), decoding_);
    picture.label = labels_[index];
    return picture;
  }

  std::string origin(int64_t index) const override { return paths_.at(index).string(); }

  std::string describe() const override {
    return str(title_, ": ", size(), " pictures of varying size, ", classes_.size(), " classes");
  }

 private:
  std::string title_;
  std::vector<std::string> classes_;
  DecodeOptions decoding_;
  std::vector<fs::path> paths_;
  std::vector<int64_t> labels_;
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
               " only classes of the train part, got the new class '", one, "'");
  for (const std::string& one : expected)
    WEFT_CHECK(std::binary_search(got.begin(), got.end(), one), "folder: expected in ", root.string(),
               " every class of the train part, '", one, "' is missing");
}

}  // namespace

std::shared_ptr<const Dataset> image_folder_root(const fs::path& root, const std::string& title,
                                                 std::vector<std::string> expected_classes, DecodeOptions decoding) {
  WEFT_CHECK(fs::is_directory(root), "folder: expected a folder with one folder per class, got ", root.string(),
             fs::exists(root) ? ", which is a file" : ", which does not exist");
  std::vector<std::string> classes = class_folders(root);
  WEFT_CHECK(!classes.empty(), "folder: expected one folder per class in ", root.string(), ", got none");
  if (!expected_classes.empty()) check_classes(root, classes, expected_classes);
  auto set = std::make_shared<ImageFolder>(title, classes, decoding);
  for (size_t c = 0; c < classes.size(); ++c) {
    std::vector<fs::path> pictures = pictures_below(root / classes[c]);
    WEFT_CHECK(!pictures.empty(), "folder: expected .jpg, .jpeg or .png pictures in ", (root / classes[c]).string(),
               ", got none. Add some, or remove the class.");
    set->add(std::move(pictures), static_cast<int64_t>(c));
  }
  return set;
}

std::shared_ptr<const Dataset> image_folder(const fs::path& directory, Split split, DecodeOptions decoding) {
  WEFT_CHECK(fs::is_directory(directory), "folder: expected a folder, got ", directory.string(),
             fs::exists(directory) ? ", which is a file" : ", which does not exist");
  const fs::path train = first_folder(directory, {"train"});
  const fs::path root = split == Split::train ? train : first_folder(directory, {"val", "test"});
  WEFT_CHECK(!root.empty(), "folder: expected ", split == Split::train ? "train" : "val or test", " in ",
             directory.string(), ", got no such folder. The layout is DIR/{train,val}/CLASS/*.jpg");
  std::vector<std::string> expected;
  if (split == Split::val && !train.empty()) expected = class_folders(train);
  return image_folder_root(root, str("folder ", name(split)), std::move(expected), decoding);
}

}  // namespace weft::data
