// SPDX-License-Identifier: Apache-2.0
#include "data/hdf5_images.h"

#include <algorithm>
#include <cctype>

#include "core/text.h"
#include "data/dataset.h"
#include "data/global_heap.h"
#include "io/hdf5/hdf5_open.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

/// The file while libhdf5 looks at it.
class Reader {
 public:
  explicit Reader(const FileReader& bytes) : bytes_(bytes), file_(hdf5_file(bytes)) {}

  /// The parts among train, val and test in the file.
  std::vector<std::string> parts() const {
    std::vector<std::string> found;
    for (const char* part : {"train", "val", "test"})
      if (!group_of(part).empty()) found.emplace_back(part);
    return found;
  }

  void choose(const std::string& part) {
    group_ = group_of(part);
    if (group_.empty()) bytes_.bad("expected a group '", part, "' with images and targets, got none");
    const Hdf5Id plist(hdf5().Fget_create_plist(file_), hdf5().Pclose);
    size_t offset_bytes = 0, length_bytes = 0;
    hsize_t user_block = 0;
    hdf5().Pget_sizes(plist, &offset_bytes, &length_bytes);
    hdf5().Pget_userblock(plist, &user_block);
    if (offset_bytes != 8 || length_bytes != 8 || user_block != 0)
      bytes_.bad("expected offsets and lengths of 8 bytes and no user block, got ", offset_bytes, ", ", length_bytes,
                 " and ", user_block, " bytes");
  }

  const std::string& part() const { return group_; }

  /// Where the images lie.
  std::vector<HeapReference> images() const {
    const Hdf5Id set = dataset(group_, "images");
    const Hdf5Id type(hdf5().Dget_type(set), hdf5().Tclose);
    const Hdf5Id element(hdf5().Tget_class(type) == H5T_VLEN ? hdf5().Tget_super(type) : -1, hdf5().Tclose);
    if (!element.valid() || hdf5().Tget_class(element) != H5T_INTEGER || hdf5().Tget_size(element) != 1)
      bytes_.bad(group_, "/images: expected variable-length sequences of bytes (u8), got another type");
    const Hdf5Id plist(hdf5().Dget_create_plist(set), hdf5().Pclose);
    if (hdf5().Pget_nfilters(plist) != 0)
      bytes_.bad(group_, "/images: expected them stored without compression or other filters, which act on the ",
                 "references alone. Write them again with `pack`, or in h5py without compression=");
    const uint64_t count = length_of(set, group_, "images", kHeapReferenceBytes);
    std::vector<uint8_t> stored(count * kHeapReferenceBytes);
    const H5D_layout_t layout = hdf5().Pget_layout(plist);
    if (layout == H5D_CONTIGUOUS) {
      copy(hdf5().Dget_offset(set), stored.size(), stored.data());
    } else if (layout == H5D_CHUNKED) {
      copy_chunks(set, plist, stored);
    } else {
      bytes_.bad(group_, "/images: expected contiguous or chunked storage, got compact");
    }
    std::vector<HeapReference> references;
    references.reserve(count);
    for (uint64_t i = 0; i < count; ++i) references.push_back(parse_heap_reference(&stored[i * kHeapReferenceBytes]));
    return references;
  }

  std::vector<int64_t> targets() const { return labels_of(group_); }

  /// The attribute or the dataset `classes`, or the numbers up to the largest label of any part.
  std::vector<std::string> classes() const {
    if (hdf5().Aexists(file_, "classes") > 0) {
      const Hdf5Id attribute(hdf5().Aopen(file_, "classes", H5P_DEFAULT), hdf5().Aclose);
      const Hdf5Id type(hdf5().Aget_type(attribute), hdf5().Tclose), space(hdf5().Aget_space(attribute), hdf5().Sclose);
      return texts("attribute 'classes'", type, space, [&](void* to) { return hdf5().Aread(attribute, type, to); });
    }
    if (has("classes")) {
      const Hdf5Id set = hdf5_dataset(file_, "classes");
      if (!set.valid())
        bytes_.bad("classes: expected a dataset of texts, got none in this file", hdf5_elsewhere(file_, "classes"));
      if (const std::string missing = hdf5_missing_filter(set); !missing.empty()) bytes_.bad("classes: ", missing);
      const Hdf5Id type(hdf5().Dget_type(set), hdf5().Tclose), space(hdf5().Dget_space(set), hdf5().Sclose);
      return texts("classes", type, space,
                   [&](void* to) { return hdf5().Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to); });
    }
    int64_t largest = 0;
    std::vector<std::string> all{group_};
    for (const std::string& part : parts()) all.push_back(group_of(part));
    for (const std::string& group : all)
      if (has(group + "/targets"))
        for (const int64_t label : labels_of(group)) largest = std::max(largest, label);
    constexpr int64_t kMost = 1 << 20;
    if (largest >= kMost) bytes_.bad("expected labels below ", kMost, ", got ", largest);
    std::vector<std::string> numbers;
    for (int64_t c = 0; c <= largest; ++c) numbers.push_back(std::to_string(c));
    return numbers;
  }

 private:
  /// One-dimensional texts of equal length or, as h5py writes them, of any; `read` reads all.
  template <class Read>
  std::vector<std::string> texts(const char* what, hid_t type, hid_t space, const Read& read) const {
    const hssize_t count = hdf5().Sget_simple_extent_npoints(space);
    const size_t length = hdf5().Tget_size(type);
    constexpr hssize_t kMost = 1 << 20;
    if (hdf5().Tget_class(type) != H5T_STRING || count < 1 || count > kMost || length > 4096 ||
        static_cast<uint64_t>(count) * length > bytes_.size())
      bytes_.bad(what, ": expected texts, got something else");
    std::vector<std::string> names;
    if (hdf5().Tis_variable_str(type) > 0) {
      std::vector<char*> pointers(static_cast<size_t>(count), nullptr);
      const bool is_read = read(pointers.data()) >= 0;
      for (const char* const text : pointers) names.emplace_back(text == nullptr ? "" : text);
      hdf5().Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data());
      if (!is_read) bytes_.bad(what, ": damaged: cannot be read");
      return names;
    }
    std::vector<char> texts(static_cast<size_t>(count) * length);
    if (read(texts.data()) < 0) bytes_.bad(what, ": damaged: cannot be read");
    for (auto at = texts.begin(); at != texts.end(); at += static_cast<std::ptrdiff_t>(length))
      names.emplace_back(at, std::find(at, at + static_cast<std::ptrdiff_t>(length), '\0'));
    return names;
  }

  /// The group that has one of the names of a part, perhaps with a capital. "": none has.
  std::string group_of(const std::string& part) const {
    std::vector<std::string> names = names_of_part(part), found;
    if (names.empty()) names = {part};
    for (std::string name : names)
      for (const char first : {name[0], static_cast<char>(std::toupper(name[0]))}) {
        name[0] = first;
        if (is_group(name)) found.push_back(name);
      }
    if (found.size() > 1) bytes_.bad("expected one group for ", part, ", got ", joined(found), ". Rename one of them");
    return found.empty() ? "" : found[0];
  }

  bool is_group(const std::string& name) const { return has(name) && hdf5_group(file_, name.c_str()).valid(); }

  bool has(const std::string& name) const {
    return hdf5().Lexists(file_, name.c_str(), hdf5_inside(hdf5().P_CLS_LINK_ACCESS_ID())) > 0;
  }

  Hdf5Id dataset(const std::string& part, const char* name) const {
    Hdf5Id set = hdf5_dataset(file_, (part + "/" + name).c_str());
    if (!set.valid())
      bytes_.bad(part, ": expected the datasets images and targets, got no ", name, " in this file",
                 hdf5_elsewhere(file_, (part + "/" + name).c_str()));
    return set;
  }

  /// The length of a dataset of one dimension, whose values a file of this size can hold.
  uint64_t length_of(hid_t set, const std::string& part, const char* name, uint64_t value_bytes) const {
    const Hdf5Id space(hdf5().Dget_space(set), hdf5().Sclose);
    hsize_t length = 0;
    if (hdf5().Sget_simple_extent_ndims(space) != 1 || hdf5().Sget_simple_extent_dims(space, &length, nullptr) != 1)
      bytes_.bad(part, "/", name, ": expected one dimension, got another number");
    const Hdf5Id plist(hdf5().Dget_create_plist(set), hdf5().Pclose);
    // Compressed labels may be more than the file has bytes. They are as many as the images, which are not compressed.
    const bool compressed = std::string_view(name) == "targets" && hdf5().Pget_nfilters(plist) != 0;
    if (length > bytes_.size() / value_bytes && !compressed)
      bytes_.bad(part, "/", name, ": expected at most ", bytes_.size() / value_bytes,
                 " values in a file of this length, got ", length);
    return length;
  }

  std::vector<int64_t> labels_of(const std::string& part) const {
    const Hdf5Id set = dataset(part, "targets");
    const Hdf5Id type(hdf5().Dget_type(set), hdf5().Tclose);
    if (hdf5().Tget_class(type) != H5T_INTEGER) bytes_.bad(part, "/targets: expected whole numbers, got another type");
    if (const std::string missing = hdf5_missing_filter(set); !missing.empty()) bytes_.bad(part, "/targets: ", missing);
    const uint64_t count = length_of(set, part, "targets", hdf5().Tget_size(type));
    const uint64_t images = length_of(dataset(part, "images"), part, "images", kHeapReferenceBytes);
    if (count != images) bytes_.bad(part, ": expected as many targets as images, got ", count, " and ", images);
    std::vector<int64_t> labels(count);
    if (hdf5().Dread(set, hdf5().T_NATIVE_INT64(), H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data()) < 0)
      bytes_.bad(part, "/targets: damaged: cannot be read");
    return labels;
  }

  /// References as they are stored at `address`.
  void copy(haddr_t address, uint64_t size, uint8_t* to) const {
    if (address == HADDR_UNDEF) bytes_.bad(group_, "/images: expected images, got none: nothing has been written");
    if (address > bytes_.size() || size > bytes_.size() - address)
      bytes_.bad(group_, "/images: expected references before the file's end, byte ", bytes_.size(), ", got byte ",
                 address, ". Is the file cut short?");
    bytes_.read(address, to, size);
  }

  void copy_chunks(hid_t set, hid_t plist, std::vector<uint8_t>& stored) const {
    hsize_t chunk = 0;
    if (hdf5().Pget_chunk(plist, 1, &chunk) != 1 || chunk == 0)
      bytes_.bad(group_, "/images: damaged: a chunk of length 0");
    const uint64_t count = stored.size() / kHeapReferenceBytes;
    for (hsize_t first = 0; first < count; first += chunk) {
      unsigned filters = 0;
      haddr_t address = HADDR_UNDEF;
      hsize_t size = 0;
      if (hdf5().Dget_chunk_info_by_coord(set, &first, &filters, &address, &size) < 0)
        bytes_.bad(group_, "/images: damaged: a chunk cannot be found");
      const uint64_t some = std::min<uint64_t>(chunk, count - first) * kHeapReferenceBytes;
      if (address != HADDR_UNDEF && size < some) bytes_.bad(group_, "/images: damaged: a chunk is too short");
      copy(address, some, &stored[first * kHeapReferenceBytes]);
    }
  }

  const FileReader& bytes_;
  const Hdf5Quiet quiet_;
  Hdf5Id file_;
  std::string group_;
};

class Hdf5Images : public EncodedDataset {
 public:
  Hdf5Images(std::unique_ptr<FileReader> file, std::string part, std::vector<std::string> classes,
             std::vector<int64_t> labels, std::vector<HeapReference> references, DecodeOptions decoding)
      : EncodedDataset(str("hdf5 ", file->path(), " ", part), std::move(classes), std::move(labels), decoding),
        file_(std::move(file)),
        part_(std::move(part)),
        references_(std::move(references)) {}

  std::span<const uint8_t> encoded(int64_t index, std::vector<uint8_t>& buffer) const override {
    check_index(index);
    return read_heap_object(*file_, references_[index], part_, index, buffer);
  }

  std::string origin(int64_t index) const override { return str(file_->path(), " ", part_, " image ", index); }

 private:
  std::unique_ptr<FileReader> file_;
  std::string part_;
  std::vector<HeapReference> references_;
};

}  // namespace

std::shared_ptr<const EncodedDataset> hdf5_images(const std::filesystem::path& path, const std::string& part,
                                                  DecodeOptions decoding) {
  auto file = std::make_unique<FileReader>(path, "hdf5");
  Reader reader(*file);
  reader.choose(part);
  std::vector<HeapReference> references = reader.images();
  std::vector<int64_t> labels = reader.targets();
  std::vector<std::string> classes = reader.classes();
  return std::make_shared<Hdf5Images>(std::move(file), reader.part(), std::move(classes), std::move(labels),
                                      std::move(references), decoding);
}

std::vector<std::string> hdf5_parts(const std::filesystem::path& path) {
  const FileReader file(path, "hdf5");
  return Reader(file).parts();
}

}  // namespace weft::data
