// SPDX-License-Identifier: Apache-2.0
#include "data/cifar.h"

#include "data/file_bytes.h"
#include "data/fixed_dataset.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kEdge = 32;
constexpr int64_t kPlane = kEdge * kEdge;
constexpr int64_t kPixelBytes = 3 * kPlane;

/// How one variant lays out its records.
struct Layout {
  const char* name;
  int64_t label_bytes;
  int64_t label_at;  ///< the label byte that counts
  int64_t classes;

  int64_t record_bytes() const { return label_bytes + kPixelBytes; }
};

/// The files of `candidates` that exist, in `directory` or else in `subfolder`. Errors: none.
std::vector<fs::path> find_files(const Layout& layout, const fs::path& directory, const char* subfolder,
                                 const std::vector<std::string>& candidates) {
  for (const fs::path& folder : {directory, directory / subfolder}) {
    std::vector<fs::path> found;
    for (const std::string& candidate : candidates)
      if (fs::exists(folder / candidate)) found.push_back(folder / candidate);
    if (!found.empty()) return found;
  }
  std::string looked_for;
  for (const std::string& candidate : candidates) looked_for += (looked_for.empty() ? "" : ", ") + candidate;
  const bool packed = fs::exists(directory / (candidates.front() + ".xz"));
  fail(layout.name, ": expected at least one of ", looked_for, " in ", directory.string(), " or in its ", subfolder,
       ", got ", fs::exists(directory) ? "none of them" : "no such folder",
       packed ? str(". Unpack ", candidates.front(), ".xz with xz -dk first.") : std::string());
}

void append_records(const Layout& layout, const fs::path& path, FixedDataset::Contents& contents) {
  const std::vector<uint8_t> bytes = read_file(path);
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t record = layout.record_bytes();
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
    WEFT_CHECK(label < layout.classes, layout.name, ": expected labels 0 to ", layout.classes - 1, ", got ", label,
               " in ", path.string(), " record ", i, ". The file is corrupt or of another format.");
    contents.labels[before + i] = label;
    const uint8_t* planes = from + layout.label_bytes;
    uint8_t* to = contents.pixels.data() + (before + i) * kPixelBytes;
    for (int64_t p = 0; p < kPlane; ++p)
      for (int64_t c = 0; c < 3; ++c) to[3 * p + c] = planes[c * kPlane + p];
  }
}

/// The first `count` names of a file of names, or `fallback` where there is no such file.
std::vector<std::string> class_names(const Layout& layout, const fs::path& path, std::vector<std::string> fallback) {
  if (!fs::exists(path)) return fallback;
  std::vector<std::string> names = read_lines(path);
  WEFT_CHECK(static_cast<int64_t>(names.size()) == layout.classes, layout.name, ": expected ", layout.classes,
             " names in ", path.string(), ", got ", names.size());
  return names;
}

std::vector<std::string> numbered(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::shared_ptr<const Dataset> read_records(const Layout& layout, const std::vector<fs::path>& files, Split split,
                                            std::vector<std::string> classes) {
  FixedDataset::Contents contents;
  contents.title = str(layout.name, " ", name(split));
  contents.height = contents.width = kEdge;
  contents.channels = 3;
  contents.classes = std::move(classes);
  std::vector<std::pair<int64_t, std::string>> ends;
  for (const fs::path& file : files) {
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
  const Layout layout{"cifar10", 1, 0, 10};
  std::vector<std::string> candidates{"test_batch.bin"};
  if (split == Split::train) {
    candidates.clear();
    for (int i = 1; i <= 5; ++i) candidates.push_back(str("data_batch_", i, ".bin"));
  }
  const std::vector<fs::path> files = find_files(layout, directory, "cifar-10-batches-bin", candidates);
  const std::vector<std::string> names{"airplane", "automobile", "bird",  "cat",  "deer",
                                       "dog",      "frog",       "horse", "ship", "truck"};
  return read_records(layout, files, split, class_names(layout, files[0].parent_path() / "batches.meta.txt", names));
}

std::shared_ptr<const Dataset> cifar100(const fs::path& directory, Split split, CifarLabels labels) {
  const bool fine = labels == CifarLabels::fine;
  const Layout layout{fine ? "cifar100" : "cifar100-coarse", 2, fine ? 1 : 0, fine ? 100 : 20};
  const std::vector<fs::path> files =
      find_files(layout, directory, "cifar-100-binary", {split == Split::train ? "train.bin" : "test.bin"});
  const char* names = fine ? "fine_label_names.txt" : "coarse_label_names.txt";
  return read_records(layout, files, split,
                      class_names(layout, files[0].parent_path() / names, numbered(layout.classes)));
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
