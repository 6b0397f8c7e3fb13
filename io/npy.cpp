// SPDX-License-Identifier: Apache-2.0
#include "io/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "core/text.h"
#include "io/file_reader.h"
#include "io/stored_dtype.h"
#include "io/torch/zip_archive.h"

namespace weft {
namespace {

constexpr char kNumpyMagic[] = "\x93NUMPY";
constexpr size_t kNumpyMagicBytes = 6;

struct NumpyType {
  std::string_view text;
  std::string_view stored;  ///< safetensors' name of an element, or of a part
  bool is_complex = false;
};
constexpr NumpyType kNumpyTypes[] = {{"<f2", "F16"},       {"<f4", "F32"}, {"<f8", "F64"},  {"|i1", "I8"},
                                     {"<i2", "I16"},       {"<i4", "I32"}, {"<i8", "I64"},  {"|u1", "U8"},
                                     {"<u2", "U16"},       {"<u4", "U32"}, {"|b1", "BOOL"}, {"<c8", "F32", true},
                                     {"<c16", "F64", true}};

struct NumpyHeader {
  std::string where;  ///< begins error texts: `npy: FILE`
  std::string text;   ///< a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 20), }

  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail(printable(str(where, ": ", parts...)));
  }

  /// The text after `'key':`, without leading spaces.
  std::string_view value(const std::string& key) const {
    const size_t at = text.find('\'' + key + "':");
    if (at == std::string::npos) bad("expected the key '", key, "' in the header, got none");
    std::string_view rest = std::string_view(text).substr(at + key.size() + 3);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest;
  }

  const NumpyType& type() const {
    const std::string_view rest = value("descr");
    for (const NumpyType& one : kNumpyTypes)
      if (rest.starts_with(str('\'', one.text, '\''))) return one;
    bad("expected elements f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, b1, c8 or c16, little-endian, got ",
        rest.substr(0, 8));
  }

  Shape shape() const {
    std::string_view rest = value("shape");
    const size_t end = rest.find(')');
    if (!rest.starts_with('(') || end == std::string::npos) bad("expected a shape such as (1, 20), got ", rest);
    rest = rest.substr(1, end - 1);
    std::vector<int64_t> sizes;
    while (rest.find_first_not_of(" ,") != std::string_view::npos) {
      rest.remove_prefix(rest.find_first_not_of(" ,"));
      int64_t size = 0;
      const auto [end_of_number, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
      if (error == std::errc::invalid_argument || size < 0) bad("expected numbers in the shape, got ", rest);
      sizes.push_back(size);
      if (error != std::errc() || sizes.size() > 8 || !is_countable(Shape(sizes)))
        bad("expected at most 2^60 numbers in 8 dimensions, got more");
      rest.remove_prefix(static_cast<size_t>(end_of_number - rest.data()));
    }
    return Shape(sizes);
  }
};

/// The array in a file of `size` bytes; `read(offset, to, bytes)` reads a part.
template <class Read>
Tensor parse(uint64_t size, const std::string& where, Read&& read) {
  NumpyHeader header{where, {}};
  std::array<uint8_t, kNumpyMagicBytes + 6> start{};
  read(0, start.data(), std::min<uint64_t>(size, start.size()));
  if (std::memcmp(start.data(), kNumpyMagic, kNumpyMagicBytes) != 0)
    header.bad("expected a file of NumPy's np.save, got another format");
  const int version = start[kNumpyMagicBytes];
  if (version < 1 || version > 3) header.bad("expected version 1 to 3 of the format, got ", version);
  const size_t width = version == 1 ? 2 : 4;
  const size_t begin = kNumpyMagicBytes + 2 + width;
  uint64_t length = 0;  // little-endian
  for (size_t i = begin; i-- > begin - width;) length = length << 8 | start[i];
  if (size < begin || length > size - begin) header.bad("cut short inside the header");
  header.text.resize(length);
  read(begin, header.text.data(), length);
  const NumpyType& type = header.type();
  const StoredDType& stored = *find_stored_dtype(type.stored);
  const Shape shape = header.shape();
  std::vector<int64_t> sizes(shape.begin(), shape.end()), order;
  const bool is_fortran = header.value("fortran_order").starts_with("True");  // the first dimension is the dense one
  if (is_fortran) std::reverse(sizes.begin(), sizes.end());
  for (int64_t d = shape.rank(); d-- > 0;) order.push_back(d);
  if (type.is_complex) {
    if (shape.rank() > 7) header.bad("expected at most 7 dimensions of complex numbers, got 8");
    order.push_back(shape.rank());
    sizes.push_back(2);
  }
  const uint64_t left = size - begin - length, expected = static_cast<uint64_t>(Shape(sizes).numel()) * stored.bytes;
  if (left != expected) header.bad("expected ", expected, " bytes after the header, got ", left);
  const Tensor array = read_stored(
      stored, Shape(sizes), [&](void* to, uint64_t bytes) { read(begin + length, to, bytes); },
      [&](std::string_view message) { header.bad(message); });
  return is_fortran ? array.permute(Shape(order)).contiguous() : array;
}

/// The file of an array, or of complex numbers whose parts `array` holds.
std::vector<uint8_t> file_of(const Tensor& array, const std::string& where, bool is_complex = false) {
  const Tensor dense = array.detach().to(Device{}).contiguous();
  const auto found = std::find_if(std::begin(kNumpyTypes), std::end(kNumpyTypes), [&](const NumpyType& one) {
    return one.stored == stored_name(dense.dtype()) && one.is_complex == is_complex;
  });
  WEFT_CHECK(found != std::end(kNumpyTypes), where, ": expected f16, f32, f64, i32, i64, u8 or bool, got ", array);
  std::string sizes;
  const int rank = dense.dim() - (is_complex ? 1 : 0);
  for (int d = 0; d < rank; ++d) sizes += str(dense.size(d), d + 1 < rank || d == 0 ? ", " : "");
  std::string header = str("{'descr': '", found->text, "', 'fortran_order': False, 'shape': (", sizes, "), }");
  constexpr size_t kAlignment = 64;
  const size_t fixed = kNumpyMagicBytes + 4;
  header.append((kAlignment - (fixed + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::vector<uint8_t> bytes(kNumpyMagic, kNumpyMagic + kNumpyMagicBytes);
  for (const size_t byte : {size_t{1}, size_t{0}, header.size() & 255, header.size() >> 8})
    bytes.push_back(static_cast<uint8_t>(byte));
  bytes.insert(bytes.end(), header.begin(), header.end());
  const auto* const data = static_cast<const uint8_t*>(dense.raw_data());
  bytes.insert(bytes.end(), data, data + dense.nbytes());
  return bytes;
}

}  // namespace

Tensor read_npy(const std::filesystem::path& path) {
  const FileReader file(path, "npy");
  return parse(file.size(), str("npy: ", path.string()),
               [&](uint64_t offset, void* to, uint64_t bytes) { file.read(offset, to, bytes); });
}

void write_npy(const std::filesystem::path& path, const Tensor& array) {
  write_file(path, file_of(array, str("npy: ", path.string())));
}

void write_npy(const std::filesystem::path& path, const ComplexTensor& array) {
  write_file(path, file_of(array.parts(), str("npy: ", path.string()), true));
}

std::map<std::string, Tensor> read_npz(const std::filesystem::path& path) {
  constexpr std::string_view kSuffix = ".npy";
  const ZipArchive archive(path, "npz");
  std::map<std::string, Tensor> arrays;
  for (size_t i = 0; i < archive.entries().size(); ++i) {
    const ZipArchive::Entry& entry = archive.entries()[i];
    const std::string where = str("npz: ", path.string(), ": ", entry.name);
    WEFT_CHECK(entry.name.ends_with(kSuffix), printable(where), ": expected an array, NAME.npy, got another entry of ",
               entry.size, " bytes");
    const std::vector<uint8_t> bytes = archive.unpack(i);
    arrays.emplace(entry.name.substr(0, entry.name.size() - kSuffix.size()),
                   parse(bytes.size(), where, [&](uint64_t offset, void* to, uint64_t count) {
                     std::memcpy(to, bytes.data() + offset, count);
                   }));
  }
  return arrays;
}

void write_npz(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays) {
  WEFT_CHECK(!arrays.empty(), "npz: ", path.string(), ": expected at least one array, got none");
  AtomicFile file(path, "npz");
  ZipWriter writer(file);
  for (const auto& [name, array] : arrays) {
    WEFT_CHECK(!name.empty() && name.find('/') == std::string::npos && printable(name) == name, "npz: ", path.string(),
               ": expected names of arrays without a /, got '", printable(name), "'");
    const auto bytes =
        std::make_shared<const std::vector<uint8_t>>(file_of(array, str("npz: ", path.string(), ": ", name)));
    writer.add(name + ".npy", bytes->size(), [bytes] { return std::shared_ptr<const void>(bytes, bytes->data()); });
  }
  writer.close();
  file.commit();
}

}  // namespace weft
