// SPDX-License-Identifier: Apache-2.0
#include "data/idx.h"

#include <algorithm>

#include "core/text.h"
#include "data/archive.h"
#include "data/dataset.h"
#include "io/file_kind.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = uint64_t{16} << 30;  // limit of a set, which is kept in memory
constexpr uint64_t kLongestHeader = 4 + 4 * 4;

/// An IDX file of unsigned bytes: its sizes, then its elements.
struct IdxFile {
  fs::path path;
  std::vector<uint8_t> bytes;  ///< as stored
  bool packed = false;
  std::vector<int64_t> sizes = {};
  uint64_t header = 0, elements = 0;
};

/// The names that a file may have: some mirrors write train-images.idx3-ubyte.
std::vector<std::string> names_of(const std::string& stem) {
  std::string dotted = stem;
  dotted[dotted.rfind("-idx")] = '.';
  return {stem, stem + ".gz", dotted, dotted + ".gz"};
}

/// "": there is none.
fs::path look_for(const fs::path& directory, const std::string& stem) {
  for (const std::string& name : names_of(stem))
    if (fs::is_regular_file(directory / name)) return directory / name;
  return {};
}

fs::path find_file(const fs::path& directory, const std::string& stem) {
  const fs::path found = look_for(directory, stem);
  if (!found.empty()) return found;
  std::vector<std::string> others;  // such as EMNIST's emnist-letters-train-images-idx3-ubyte
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored))
    if (const std::string name = entry.path().filename().string(); name.find("idx") != std::string::npos)
      others.push_back(name);
  std::sort(others.begin(), others.end());
  for (const fs::path& below : {directory / "raw", directory / "MNIST/raw"})  // torchvision's folders
    WEFT_CHECK(look_for(below, stem).empty(), "idx: expected ", stem, " in ", directory.string(), ", it is in ",
               below.string(), ": name that folder");
  fail("idx: expected one of ", joined(names_of(stem)), " in ", directory.string(), ", got ",
       fs::exists(directory) ? "none of them" : "no such folder", archive_hint(directory),
       others.empty() ? "" : printable(". There are: " + joined(others, 6) + ". Link or rename those of one set"));
}

/// Reads the header. Nothing else is unpacked yet.
IdxFile open_idx(const fs::path& path) {
  IdxFile file{path, read_file(path)};
  file.packed = file.bytes.size() >= 2 && file.bytes[0] == 0x1f && file.bytes[1] == 0x8b;  // whatever its name says
  std::vector<uint8_t> start;
  if (file.packed) start = gunzip(file.bytes, path.string(), kLongestHeader);
  const std::vector<uint8_t>& b = file.packed ? start : file.bytes;
  WEFT_CHECK(b.size() >= 4, "idx: ", path.string(), " is truncated: expected a header, got ", b.size(), " bytes");
  if (b[0] != 0 && !file.packed) refuse_known(FileReader(path, "idx"), "an IDX file");
  WEFT_CHECK(b[0] == 0 && b[1] == 0, "idx: expected ", path.string(), " to begin with 00 00, got the magic number 0x",
             std::hex, (b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3]), ". It is not an IDX file.");
  WEFT_CHECK(b[2] == 8, "idx: expected unsigned bytes (type 8) in ", path.string(), ", got type ", int{b[2]});
  const size_t rank = b[3];
  WEFT_CHECK(rank >= 1 && rank <= 4, "idx: expected 1 to 4 dimensions in ", path.string(), ", got ", rank);
  file.header = 4 + 4 * rank;
  WEFT_CHECK(b.size() >= file.header, "idx: ", path.string(), " is truncated: expected a header of ", file.header,
             " bytes, got ", b.size());
  file.elements = 1;
  for (size_t d = 0; d < rank; ++d) {
    const uint8_t* s = b.data() + 4 + 4 * d;
    const uint32_t size = uint32_t{s[0]} << 24 | uint32_t{s[1]} << 16 | uint32_t{s[2]} << 8 | s[3];
    WEFT_CHECK(file.elements <= kMostBytes / std::max<uint64_t>(size, 1), "idx: ", path.string(), ": expected at most ",
               kMostBytes, " bytes of data, its header promises more");
    file.elements *= size;
    file.sizes.push_back(size);
  }
  return file;
}

/// The elements. A compressed file is unpacked only as far as its header promises.
std::vector<uint8_t> read_elements(IdxFile file) {
  if (file.packed)  // a byte more tells of an oversized one
    file.bytes = gunzip(file.bytes, file.path.string(), file.header + file.elements + 1);
  const size_t got = file.bytes.size() - file.header;
  WEFT_CHECK(got == file.elements, "idx: ", file.path.string(), " is ", got < file.elements ? "truncated" : "oversized",
             ": its header promises ", file.elements, " bytes of data, got ",
             got < file.elements || !file.packed ? str(got) : "more");
  file.bytes.erase(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(file.header));
  return std::move(file.bytes);
}

IdxFile open_labels(const fs::path& path) {
  IdxFile file = open_idx(path);
  WEFT_CHECK(file.sizes.size() == 1, "idx: expected one dimension of labels in ", path.string(), ", got ",
             file.sizes.size());
  return file;
}

}  // namespace

std::shared_ptr<const Dataset> idx(const fs::path& directory, Split split) {
  const std::string stem = split == Split::train ? "train" : "t10k", other = split == Split::train ? "t10k" : "train";
  const fs::path image_path = find_file(directory, stem + "-images-idx3-ubyte");
  const fs::path label_path = find_file(directory, stem + "-labels-idx1-ubyte");
  IdxFile images = open_idx(image_path);
  const size_t rank = images.sizes.size();
  WEFT_CHECK(rank == 3 || rank == 4, "idx: expected images [n, h, w] or [n, h, w, c] in ", image_path.string(),
             ", got ", rank, " dimensions");
  IdxFile labels = open_labels(label_path);
  WEFT_CHECK(labels.sizes[0] == images.sizes[0], "idx: expected as many labels as images, got ", labels.sizes[0],
             " in ", label_path.string(), " and ", images.sizes[0], " in ", image_path.string());

  FixedDataset::Contents contents;
  contents.title = str("idx ", name(split));
  contents.height = images.sizes[1];
  contents.width = images.sizes[2];
  contents.channels = rank == 4 ? images.sizes[3] : 1;
  WEFT_CHECK(contents.height > 0 && contents.width > 0 && contents.channels >= 1 && contents.channels <= 4,
             "idx: expected images of at least 1x1 with 1 to 4 channels in ", image_path.string(), ", got ",
             contents.height, "x", contents.width, "x", contents.channels);
  contents.pixels = read_elements(std::move(images));
  std::vector<uint8_t> stored = read_elements(std::move(labels));
  contents.labels.assign(stored.begin(), stored.end());
  // A part may have no image of the last classes: the other part's labels count too.
  if (const fs::path path = look_for(directory, other + "-labels-idx1-ubyte"); !path.empty()) {
    const std::vector<uint8_t> others = read_elements(open_labels(path));
    stored.insert(stored.end(), others.begin(), others.end());
  }
  int64_t largest = 9;
  for (const int64_t label : stored) largest = std::max(largest, label);
  for (int64_t i = 0; i <= largest; ++i) contents.classes.push_back(std::to_string(i));
  contents.origin = [path = image_path.string()](int64_t index) { return str(path, " image ", index); };
  return std::make_shared<FixedDataset>(std::move(contents));
}

}  // namespace weft::data
