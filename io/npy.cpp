// SPDX-License-Identifier: Apache-2.0
#include "io/npy.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/text.h"
#include "io/file_reader.h"
#include "io/torch/zip_archive.h"

namespace weft {
namespace {

constexpr char kNumpyMagic[] = "\x93NUMPY";
constexpr size_t kNumpyMagicBytes = 6;
constexpr int64_t kLargest = int64_t{1} << 30;  // bytes

struct NumpyType {
  const char* text;
  DType dtype;
  bool is_complex = false;
};
constexpr NumpyType kNumpyTypes[] = {{"<f2", DType::f16},     {"<f4", DType::f32},       {"<f8", DType::f64},
                                     {"<i4", DType::i32},     {"<i8", DType::i64},       {"|u1", DType::u8},
                                     {"|b1", DType::boolean}, {"<c8", DType::f32, true}, {"<c16", DType::f64, true}};

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
    bad("expected elements <f2, <f4, <f8, <i4, <i8, |u1, |b1, <c8 or <c16, got ", rest.substr(0, 8));
  }

  Shape shape() const {
    std::string_view rest = value("shape");
    const size_t end = rest.find(')');
    if (!rest.starts_with('(') || end == std::string::npos) bad("expected a shape such as (1, 20), got ", rest);
    rest = rest.substr(1, end - 1);
    std::vector<int64_t> sizes;
    int64_t numel = 1;
    while (rest.find_first_not_of(" ,") != std::string_view::npos) {
      rest.remove_prefix(rest.find_first_not_of(" ,"));
      int64_t size = 0;
      size_t digits = 0;
      for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9' && size <= kLargest; ++digits)
        size = size * 10 + (rest[digits] - '0');
      if (digits == 0) bad("expected numbers in the shape, got ", rest);
      rest.remove_prefix(digits);
      sizes.push_back(size);
      numel *= std::max<int64_t>(size, 1);
      if (size > kLargest || numel > kLargest || sizes.size() > 8)
        bad("expected at most 1 GiB in 8 dimensions, got more");
    }
    return Shape(sizes);
  }
};

uint64_t little_endian(const std::vector<uint8_t>& bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | bytes[at + i];
  return value;
}

/// The array that these bytes of a file are.
Tensor parse(const std::vector<uint8_t>& bytes, const std::string& where) {
  NumpyHeader header{where, {}};
  if (bytes.size() < kNumpyMagicBytes + 4 || std::memcmp(bytes.data(), kNumpyMagic, kNumpyMagicBytes) != 0)
    header.bad("expected a file of NumPy's np.save, got another format");
  const size_t width = bytes[kNumpyMagicBytes] == 1 ? 2 : 4;
  if (bytes[kNumpyMagicBytes] < 1 || bytes[kNumpyMagicBytes] > 3)
    header.bad("expected version 1 to 3 of the format, got ", int{bytes[kNumpyMagicBytes]});
  const size_t begin = kNumpyMagicBytes + 2 + width;
  const size_t length = bytes.size() < begin ? SIZE_MAX : little_endian(bytes, kNumpyMagicBytes + 2, width);
  if (length > bytes.size() || begin + length > bytes.size()) header.bad("cut short inside the header");
  header.text.assign(reinterpret_cast<const char*>(bytes.data()) + begin, length);
  if (header.value("fortran_order").starts_with("True")) header.bad("expected C order, got Fortran order");
  const auto& [text, dtype, is_complex] = header.type();
  Shape shape = header.shape();
  if (is_complex) {
    if (shape.rank() > 7) header.bad("expected at most 7 dimensions of complex numbers, got 8");
    std::vector<int64_t> with_parts(shape.begin(), shape.end());
    with_parts.push_back(2);
    shape = Shape(with_parts);
  }
  const size_t size = static_cast<size_t>(shape.numel()) * size_of(dtype);
  if (bytes.size() - begin - length != size)
    header.bad("expected ", size, " bytes after the header, got ", bytes.size() - begin - length);
  const uint8_t* const data = bytes.data() + begin + length;
  if (dtype == DType::boolean && std::any_of(data, data + size, [](uint8_t byte) { return byte > 1; }))
    header.bad("expected booleans of 0 and 1, got another number");
  return Tensor::from_host(data, shape, dtype);
}

/// The file of an array, or of complex numbers whose parts `array` holds.
std::vector<uint8_t> file_of(const Tensor& array, const std::string& where, bool is_complex = false) {
  const Tensor dense = array.detach().to(Device{}).contiguous();
  const auto found = std::find_if(std::begin(kNumpyTypes), std::end(kNumpyTypes), [&](const NumpyType& one) {
    return one.dtype == dense.dtype() && one.is_complex == is_complex;
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

Tensor read_npy(const std::filesystem::path& path) { return parse(read_file(path), str("npy: ", path.string())); }

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
    WEFT_CHECK(entry.name.ends_with(kSuffix) && entry.size <= static_cast<uint64_t>(2 * kLargest), printable(where),
               ": expected an array of at most 1 GiB, NAME.npy, got another entry of ", entry.size, " bytes");
    std::vector<uint8_t> bytes(entry.size);
    archive.read(i, bytes.data());
    arrays.emplace(entry.name.substr(0, entry.name.size() - kSuffix.size()), parse(bytes, where));
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
