// SPDX-License-Identifier: Apache-2.0
#include "data/cifar.h"

#include <algorithm>

#include "core/text.h"
#include "data/archive.h"
#include "data/dataset.h"
#include "data/pickled_dict.h"
#include "io/file_kind.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kEdge = 32;
constexpr int64_t kPlane = kEdge * kEdge;
constexpr int64_t kPixelBytes = 3 * kPlane;

/// A variant's layout of records, and the folder in its archives.
struct Layout {
  const char* name;
  int64_t label_bytes;
  int64_t label_at;  ///< the label byte that counts
  int64_t classes;
  const char *folder, *python_folder;
  const char* names;                                       ///< the file of class names
  const char *python_labels, *python_meta, *python_names;  ///< keys, and the file of the class names

  int64_t record_bytes() const { return label_bytes + kPixelBytes; }
};

/// Files of one kind that hold a part.
struct Files {
  std::vector<fs::path> paths;
  bool python = false;
  std::string missing = {};  ///< names of candidates that are not there
};

std::string missing_of(const std::vector<std::string>& candidates, const std::vector<fs::path>& found) {
  std::vector<std::string> missing = candidates;
  std::erase_if(missing, [&](const std::string& name) {
    return std::any_of(found.begin(), found.end(), [&](const fs::path& path) { return path.filename() == name; });
  });
  return joined(missing);
}

/// The candidates that exist, in `directory` or else in `subfolder`.
std::vector<fs::path> those_there(const fs::path& directory, const char* subfolder,
                                  const std::vector<std::string>& candidates) {
  std::vector<fs::path> found;
  for (const fs::path& folder : {directory, directory / subfolder}) {
    for (const std::string& candidate : candidates)
      if (fs::is_regular_file(folder / candidate)) found.push_back(folder / candidate);
    if (!found.empty()) break;
  }
  return found;
}

/// The binary version's files, or those of the python version, which have the same names without `.bin`.
Files find_files(const Layout& layout, const fs::path& directory, const std::vector<std::string>& candidates) {
  Files files{.paths = those_there(directory, layout.folder, candidates)};
  files.missing = missing_of(candidates, files.paths);
  if (!files.paths.empty()) return files;
  std::vector<std::string> pickled;
  for (const std::string& candidate : candidates) pickled.push_back(fs::path(candidate).stem().string());
  files = {.paths = those_there(directory, layout.python_folder, pickled), .python = true};
  files.missing = missing_of(pickled, files.paths);
  if (!files.paths.empty()) return files;
  std::string looked_for;
  for (const std::string& candidate : candidates) looked_for += (looked_for.empty() ? "" : ", ") + candidate;
  const bool packed = fs::exists(directory / (candidates.front() + ".xz"));
  fail(layout.name, ": expected at least one of ", looked_for, " in ", directory.string(), " or in its ", layout.folder,
       ", or the python version in its ", layout.python_folder, ", got ",
       fs::exists(directory) ? "none of them" : "no such folder",
       packed ? str(". Unpack ", candidates.front(), ".xz with xz -dk first.") : archive_hint(directory));
}

/// Planes of red, green and blue as pixels.
void interleave(const uint8_t* planes, uint8_t* to) {
  for (int64_t p = 0; p < kPlane; ++p)
    for (int64_t c = 0; c < 3; ++c) to[3 * p + c] = planes[c * kPlane + p];
}

void check_label(const Layout& layout, int64_t label, const fs::path& path, int64_t record) {
  WEFT_CHECK(label >= 0 && label < layout.classes, layout.name, ": expected labels 0 to ", layout.classes - 1, ", got ",
             label, " in ", path.string(), " record ", record, ". The file is corrupt or of another format.");
}

void append_records(const Layout& layout, const fs::path& path, FixedDataset::Contents& contents) {
  const std::vector<uint8_t> bytes = read_file(path);
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t record = layout.record_bytes();
  if (size % record != 0) refuse_known(FileReader(path, layout.name), str("records of ", record, " bytes"));
  WEFT_CHECK(size > 0 && size % record == 0, layout.name, ": expected a whole number of records of ", record,
             " bytes in ", path.string(), ", got ", size, " bytes (", size / record, " records and ", size % record,
             " bytes). The file is truncated or of another format.");
  const auto before = static_cast<int64_t>(contents.labels.size());
  const int64_t count = size / record;
  contents.labels.resize(before + count);
  contents.pixels.resize((before + count) * kPixelBytes);
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* from = bytes.data() + i * record;
    const int64_t label = from[layout.label_at];
    check_label(layout, label, path, i);
    contents.labels[before + i] = label;
    interleave(from + layout.label_bytes, contents.pixels.data() + (before + i) * kPixelBytes);
  }
}

void append_pickled(const Layout& layout, const fs::path& path, FixedDataset::Contents& contents) {
  const PickledDict file(path);
  const PickledDict::Rows data = file.rows("data");
  const std::vector<int64_t> labels = file.integers(layout.python_labels);
  WEFT_CHECK(data.columns == kPixelBytes && data.rows > 0 && data.rows == static_cast<int64_t>(labels.size()),
             layout.name, ": expected rows of ", kPixelBytes, " bytes, and a label for each, in ", path.string(),
             ", got ", data.rows, " of ", data.columns, " and ", labels.size(), " labels");
  const size_t before = contents.labels.size();
  contents.labels.insert(contents.labels.end(), labels.begin(), labels.end());
  contents.pixels.resize(contents.labels.size() * kPixelBytes);
  for (int64_t i = 0; i < data.rows; ++i) {
    check_label(layout, labels[static_cast<size_t>(i)], path, i);
    interleave(data.values + i * kPixelBytes,
               contents.pixels.data() + (static_cast<int64_t>(before) + i) * kPixelBytes);
  }
}

/// The names of the classes beside the files, or `fallback` where there are none.
std::vector<std::string> class_names(const Layout& layout, const Files& files, std::vector<std::string> fallback) {
  const fs::path path = files.paths[0].parent_path() / (files.python ? layout.python_meta : layout.names);
  if (!fs::exists(path)) return fallback;
  std::vector<std::string> names = files.python ? PickledDict(path).texts(layout.python_names) : read_lines(path);
  WEFT_CHECK(static_cast<int64_t>(names.size()) == layout.classes, layout.name, ": expected ", layout.classes,
             " names in ", path.string(), ", got ", names.size());
  return names;
}

std::vector<std::string> numbered(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::shared_ptr<const Dataset> read_all(const Layout& layout, const Files& files, Split split,
                                        std::vector<std::string> classes) {
  FixedDataset::Contents contents;
  contents.title = str(layout.name, " ", name(split));
  contents.height = contents.width = kEdge;
  contents.channels = 3;
  contents.classes = std::move(classes);
  if (!files.missing.empty()) contents.note = "without " + files.missing + ", not found";
  std::vector<std::pair<int64_t, std::string>> ends;
  for (const fs::path& file : files.paths) {
    if (files.python)
      append_pickled(layout, file, contents);
    else
      append_records(layout, file, contents);
    ends.emplace_back(static_cast<int64_t>(contents.labels.size()), file.string());
  }
  contents.origin = [ends](int64_t index) {
    int64_t first = 0;
    for (const auto& [end, file] : ends) {
      if (index < end) return str(file, " record ", index - first);
      first = end;
    }
    return str("record ", index);
  };
  return std::make_shared<FixedDataset>(std::move(contents));
}

}  // namespace

std::shared_ptr<const Dataset> cifar10(const fs::path& directory, Split split) {
  const Layout layout{.name = "cifar10",
                      .label_bytes = 1,
                      .label_at = 0,
                      .classes = 10,
                      .folder = "cifar-10-batches-bin",
                      .python_folder = "cifar-10-batches-py",
                      .names = "batches.meta.txt",
                      .python_labels = "labels",
                      .python_meta = "batches.meta",
                      .python_names = "label_names"};
  std::vector<std::string> candidates{"test_batch.bin"};
  if (split == Split::train) {
    candidates.clear();
    for (int i = 1; i <= 5; ++i) candidates.push_back(str("data_batch_", i, ".bin"));
  }
  const Files files = find_files(layout, directory, candidates);
  const std::vector<std::string> names{"airplane", "automobile", "bird",  "cat",  "deer",
                                       "dog",      "frog",       "horse", "ship", "truck"};
  return read_all(layout, files, split, class_names(layout, files, names));
}

std::shared_ptr<const Dataset> cifar100(const fs::path& directory, Split split, CifarLabels labels) {
  const bool fine = labels == CifarLabels::fine;
  const Layout layout{.name = fine ? "cifar100" : "cifar100-coarse",
                      .label_bytes = 2,
                      .label_at = fine ? 1 : 0,
                      .classes = fine ? 100 : 20,
                      .folder = "cifar-100-binary",
                      .python_folder = "cifar-100-python",
                      .names = fine ? "fine_label_names.txt" : "coarse_label_names.txt",
                      .python_labels = fine ? "fine_labels" : "coarse_labels",
                      .python_meta = "meta",
                      .python_names = fine ? "fine_label_names" : "coarse_label_names"};
  const Files files = find_files(layout, directory, {split == Split::train ? "train.bin" : "test.bin"});
  return read_all(layout, files, split, class_names(layout, files, numbered(layout.classes)));
}

std::vector<uint8_t> cifar10_records(const uint8_t* pixels, const int64_t* labels, int64_t count) {
  std::vector<uint8_t> bytes;
  bytes.reserve(count * (1 + kPixelBytes));
  for (int64_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<uint8_t>(labels[i]));
    const uint8_t* from = pixels + i * kPixelBytes;
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t p = 0; p < kPlane; ++p) bytes.push_back(from[3 * p + c]);
  }
  return bytes;
}

}  // namespace weft::data
