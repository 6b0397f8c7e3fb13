// SPDX-License-Identifier: Apache-2.0
#include "data/image_folder.h"

#include <algorithm>
#include <map>
#include <span>

#include "core/text.h"
#include "data/archive.h"
#include "data/text/words.h"
#include "io/file_reader.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

std::string suffix_of(const fs::path& path) { return lower_case(path.extension().string()); }

bool lists(std::span<const char* const> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_image_name(const fs::path& path) { return lists(image_suffixes(), suffix_of(path)); }

std::string shown(const fs::path& path) { return printable(path.string()); }

/// A folder's content, but for hidden names, in no order. Links count as their targets.
struct Listing {
  std::vector<fs::path> folders, files;
};

Listing list(const fs::path& folder) {
  Listing found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_hidden(at->path())) continue;
    std::error_code problem;
    WEFT_CHECK(!at->is_symlink() || fs::exists(at->status(problem)),
               "folder: expected a file or a folder, got the link ", shown(at->path()),
               ", which leads nowhere: ", problem.message());
    (at->is_directory(problem) ? found.folders : found.files).push_back(at->path());
  }
  WEFT_CHECK(!error, "folder: expected to read ", shown(folder), ", got '", error.message(), "'");
  return found;
}

/// Images, and how many other files have each suffix.
struct Images {
  std::vector<fs::path> paths;
  std::map<std::string, int64_t> others;

  void add(const Listing& found) {
    for (const fs::path& file : found.files) {
      if (is_image_name(file))
        paths.push_back(file);
      else
        ++others[suffix_of(file)];
    }
  }
  /// `3 .webp, 1 .txt`; "" where there are none.
  std::string left_out() const {
    std::vector<std::string> texts;
    for (const auto& [suffix, count] : others)
      texts.push_back(
          str(count, suffix.empty() ? " without suffix" : " " + printable(suffix),
              lists(unread_suffixes(), suffix) ? " (needs Leptonica: apt-get install libleptonica-dev)" : ""));
    return joined(texts, 8);
  }
};

/// `way`: the folders from the class down to this one, without links, by which a link that leads back is known.
void collect(const fs::path& folder, std::vector<fs::path>& way, Images& images) {
  const Listing found = list(folder);
  images.add(found);
  for (const fs::path& below : found.folders) {
    std::error_code problem;
    const bool link = fs::is_symlink(below);
    const fs::path real = link ? fs::canonical(below, problem) : way.back() / below.filename();
    WEFT_CHECK(!problem, "folder: expected to read ", shown(below), ", got '", problem.message(), "'");
    const auto inside = [&](const fs::path& one) {
      return std::mismatch(real.begin(), real.end(), one.begin(), one.end()).first == real.end();
    };
    WEFT_CHECK(!link || std::none_of(way.begin(), way.end(), inside),
               "folder: expected a tree of folders, got the link ", shown(below), ", which leads back to ",
               shown(real));
    way.push_back(real);
    collect(below, way, images);
    way.pop_back();
  }
}

void sort_by_bytes(std::vector<fs::path>& paths) {
  std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
}

std::vector<std::string> names_of(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  for (const fs::path& one : folders) names.push_back(one.filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void check_folder(const fs::path& folder, const char* what) {
  std::error_code problem;
  WEFT_CHECK(fs::is_directory(folder, problem), "folder: expected ", what, ", got ", shown(folder),
             problem == std::errc::no_such_file_or_directory ? ", which does not exist"
             : problem                                       ? ": " + problem.message()
                                                             : ", which is a file",
             archive_hint(folder));
}

class ImageFolder : public EncodedDataset {
 public:
  ImageFolder(std::string title, std::vector<std::string> classes, std::vector<fs::path> paths,
              std::vector<int64_t> labels, DecodeOptions decoding, const std::string& left_out)
      : EncodedDataset(std::move(title), std::move(classes), std::move(labels), decoding),
        paths_(std::move(paths)),
        left_out_(left_out.empty() ? "" : "; left out: " + left_out) {}

  std::string describe() const override { return EncodedDataset::describe() + left_out_; }

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
  std::string left_out_;
};

/// `: 'dog' differs in case alone. Rename one of them`, of a class that is none.
std::string class_that_looks_alike(const std::string& name, const std::vector<std::string>& names) {
  for (const std::string& one : names)
    if (const std::string what = sole_difference(one, name); !what.empty())
      return str(": '", printable(one), "' differs in ", what, " alone. Rename one of them");
  return "";
}

void check_classes(const fs::path& root, const std::vector<std::string>& got,
                   const std::vector<std::string>& expected) {
  for (const std::string& one : got)
    WEFT_CHECK(std::binary_search(expected.begin(), expected.end(), one), "folder: expected in ", shown(root),
               " only classes of the train part, got the new class '", printable(one), "'",
               class_that_looks_alike(one, expected));
  for (const std::string& one : expected)
    WEFT_CHECK(std::binary_search(got.begin(), got.end(), one), "folder: expected in ", shown(root),
               " every class of the train part, '", printable(one), "' is missing");
}

/// Where no part is: what the folder may be instead.
std::string instead_of_parts(const fs::path& directory, const std::vector<fs::path>& folders) {
  const fs::path above = directory.has_parent_path() ? directory.parent_path() : ".";
  for (const auto& [part, folder] : image_folder_parts(above))
    if (folder.filename() == directory.filename())
      return str(". It seems to be the part ", part, ": name the folder above");
  if (folders.size() == 1 && !image_folder_parts(folders[0]).empty())
    return str(". Its folder ", shown(folders[0]), " has parts: name that one");
  const auto has_images = [](const fs::path& one) { return !images_in(one).empty(); };
  if (std::none_of(folders.begin(), folders.end(), has_images)) return archive_hint(directory);
  return str(" but the folders ", joined(names_of(folders), 5), ". If these are classes, images of each class go into ",
             shown(directory / "train/CLASS"), " and others into ", shown(directory / "val/CLASS"));
}

}  // namespace

bool is_hidden(const fs::path& path) {
  constexpr const char* kNames[] = {"__macosx", "@eadir",       "thumbs.db",  "desktop.ini",
                                    "#recycle", "$recycle.bin", "lost+found", "system volume information"};
  const std::string name = path.filename().string();
  return name.starts_with('.') || lists(kNames, lower_case(name));
}

std::vector<fs::path> images_in(const fs::path& folder) {
  Images images;
  images.add(list(folder));
  sort_by_bytes(images.paths);
  return images.paths;
}

std::vector<std::string> image_folder_classes(const fs::path& root) { return names_of(list(root).folders); }

std::shared_ptr<const EncodedDataset> image_files(const std::string& title, std::vector<std::string> classes,
                                                  std::vector<fs::path> paths, std::vector<int64_t> labels,
                                                  DecodeOptions decoding, const std::string& left_out) {
  WEFT_CHECK(paths.size() == labels.size(), title, ": expected a label for each of ", paths.size(), " images, got ",
             labels.size());
  return std::make_shared<ImageFolder>(title, std::move(classes), std::move(paths), std::move(labels), decoding,
                                       left_out);
}

std::shared_ptr<const EncodedDataset> image_folder_root(const fs::path& root, const std::string& title,
                                                        std::vector<std::string> expected_classes,
                                                        DecodeOptions decoding) {
  check_folder(root, "a folder with one folder per class");
  Listing top = list(root);
  const std::vector<std::string> classes = names_of(top.folders);
  Images beside;  // the class folders
  beside.add(top);
  WEFT_CHECK(!classes.empty(), "folder: expected one folder per class in ", shown(root), ", got none",
             beside.paths.empty() ? archive_hint(root)
                                  : str(" but ", beside.paths.size(), " images, such as ",
                                        shown(beside.paths[0].filename()), ". Move each into the folder of its class"));
  if (!expected_classes.empty()) check_classes(root, classes, expected_classes);
  Images all;
  std::vector<int64_t> labels;
  std::vector<std::string> empty;
  for (size_t c = 0; c < classes.size(); ++c) {
    Images images;
    std::vector<fs::path> way{fs::canonical(root / classes[c])};
    collect(root / classes[c], way, images);
    sort_by_bytes(images.paths);
    if (images.paths.empty())
      empty.push_back(shown(root / classes[c]) + (images.others.empty() ? "" : " (" + images.left_out() + ")"));
    all.paths.insert(all.paths.end(), images.paths.begin(), images.paths.end());
    labels.insert(labels.end(), images.paths.size(), static_cast<int64_t>(c));
    for (const auto& [suffix, count] : images.others) all.others[suffix] += count;
  }
  WEFT_CHECK(empty.empty(), "folder: expected images (", joined({image_suffixes().begin(), image_suffixes().end()}),
             ") in each class, got none in ", joined(empty, 5), ". Add some, or remove the class", archive_hint(root));
  for (const auto& [suffix, count] : beside.others) all.others[suffix] += count;
  std::string left_out = all.left_out();
  if (!beside.paths.empty())
    left_out += str(left_out.empty() ? "" : ", ", beside.paths.size(), " images beside the classes' folders, such as ",
                    shown(beside.paths[0]));
  return image_files(title, classes, std::move(all.paths), std::move(labels), decoding, left_out);
}

std::vector<std::pair<std::string, fs::path>> image_folder_parts(const fs::path& directory) {
  std::vector<fs::path> folders = list(directory).folders;
  sort_by_bytes(folders);
  std::vector<std::pair<std::string, fs::path>> parts;
  for (const std::string part : {"train", "val", "test"})
    for (const fs::path& folder : folders) {
      if (part_named(folder.filename().string()) != part) continue;
      WEFT_CHECK(parts.empty() || parts.back().first != part, "folder: expected one folder for ", part, " in ",
                 shown(directory), ", got ", shown(parts.back().second.filename()), " and ", shown(folder.filename()),
                 ". Rename or merge one of them");
      parts.emplace_back(part, folder);
    }
  return parts;
}

std::shared_ptr<const EncodedDataset> image_folder(const fs::path& given, Split split, DecodeOptions decoding) {
  const fs::path directory = given.has_filename() ? given : given.parent_path();  // DIR/ is DIR
  check_folder(directory, "a folder");
  const auto parts = image_folder_parts(directory);
  WEFT_CHECK(!parts.empty(), "folder: expected train and val in ", shown(directory), ", got neither",
             instead_of_parts(directory, list(directory).folders), ". The layout is DIR/{train,val}/CLASS/*.jpg");
  std::vector<std::string> names;
  for (const auto& [name, folder] : parts) names.push_back(name);
  const std::string part = part_for(split, names, "folder: " + shown(directory));
  const fs::path root =
      std::find_if(parts.begin(), parts.end(), [&](const auto& one) { return one.first == part; })->second;
  std::vector<std::string> expected;
  if (part != "train" && names[0] == "train") expected = image_folder_classes(parts[0].second);
  return image_folder_root(root, "folder " + part, std::move(expected), decoding);
}

}  // namespace weft::data
