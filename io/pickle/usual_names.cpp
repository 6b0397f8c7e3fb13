// SPDX-License-Identifier: Apache-2.0
#include "io/pickle/usual_names.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/shape.h"

namespace weft {
namespace {

/// A type's name, an argument of others: `int` of a defaultdict, `numpy.ndarray` of _reconstruct.
struct TypeName final : PickleObject {
  const char* kind() const override { return "a type's name"; }
};
const TypeName kType{};

template <class T>
const T& expect(const PickleValue& value, const char* expected, const ByteStream::Fail& fail) {
  const T* found = value.as<T>();
  if (found == nullptr) fail(str("expected ", expected, ", got ", value.kind()));
  return *found;
}

/// OrderedDict(), or Python 2's OrderedDict([[key, value], …]).
void ordered_dict(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  PickleDict dict;
  if (arguments.items.size() > 1) fail(str("OrderedDict: expected one list, got ", arguments.items.size(), " values"));
  if (arguments.items.size() == 1) {
    const auto* list = arguments.items[0]->as<PickleList>();
    if (list == nullptr) fail(str("OrderedDict: expected a list, got ", arguments.items[0]->kind()));
    for (const PickleRef item : list->items) {
      const auto* pair = item->as<PickleList>();
      if (pair == nullptr || pair->items.size() != 2) fail("OrderedDict: expected pairs of key and value");
      dict.items.emplace_back(pair->items[0], pair->items[1]);
    }
  }
  result.is = std::move(dict);
}

/// defaultdict(type), empty.
void default_dict(const PickleList&, PickleValue& result, const ByteStream::Fail&) { result.is = PickleDict{}; }

void make_namespace(const PickleList&, PickleValue& result, const ByteStream::Fail&) {
  PickleDict dict;
  dict.takes_attributes = true;
  result.is = std::move(dict);
}

/// Path(part, …); the first part of an absolute one ends with the separator.
void make_path(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  std::string path;
  for (const PickleRef part : arguments.items) {
    if (!path.empty() && path.back() != '/' && path.back() != '\\') path += '/';
    path += expect<std::string>(*part, "a path's parts as texts", fail);
  }
  result.is = std::move(path);
}

/// As a list, in the file's order.
void make_set(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  result.is = PickleList{only_argument<PickleList>(arguments, "set", "a list", fail).items};
}

void make_counter(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  result.is = PickleDict{only_argument<PickleDict>(arguments, "Counter", "a dict", fail).items};
}

/// Python 3's bytes in protocol 2: encode(text, 'latin1'), a character for each byte.
void encode(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  const auto* text = arguments.items.size() != 2 ? nullptr : arguments.items[0]->as<std::string>();
  const auto* encoding = text == nullptr ? nullptr : arguments.items[1]->as<std::string>();
  if (encoding == nullptr || *encoding != "latin1") fail("_codecs.encode: expected a text and 'latin1'");
  std::string bytes;
  for (size_t i = 0; i < text->size(); ++i) {
    const auto first = static_cast<unsigned char>((*text)[i]);
    const bool two = first == 0xC2 || first == 0xC3;
    if (first >= 0x80 && (!two || i + 1 == text->size())) fail("_codecs.encode: expected characters up to U+00FF");
    bytes += two ? static_cast<char>((first & 3) << 6 | ((*text)[++i] & 0x3F)) : (*text)[i];
  }
  result.is = std::move(bytes);
}

void make_bytearray(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  result.is =
      arguments.items.empty() ? std::string() : only_argument<std::string>(arguments, "bytearray", "bytes", fail);
}

/// As the pair of its parts.
void make_complex(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  if (arguments.items.size() != 2 || arguments.items[0]->as<double>() == nullptr ||
      arguments.items[1]->as<double>() == nullptr)
    fail("complex: expected two numbers");
  result.is = PickleList{arguments.items, true};
}

struct NumpyDType final : PickleObject {
  explicit NumpyDType(const std::string& text) : name(text) {}
  const char* kind() const override { return "a dtype"; }
  /// (version, byte order, …)
  void build(const PickleValue& state, const ByteStream::Fail& fail) override {
    const auto& parts = expect<PickleList>(state, "a tuple", fail).items;
    if (parts.size() < 2) fail(str("expected a dtype of 2 parts or more, got ", parts.size()));
    is_big_endian = expect<std::string>(*parts[1], "a byte order", fail) == ">";
  }
  /// Bytes of an element; 0: unknown.
  uint64_t bytes() const {
    uint64_t size = 0;
    for (const char digit : std::string_view(name).substr(std::min<size_t>(1, name.size()))) {
      if (digit < '0' || digit > '9' || size > 1 << 20) return 0;
      size = 10 * size + static_cast<uint64_t>(digit - '0');
    }
    return name.starts_with('U') ? 4 * size : size;
  }

  const std::string& name;  // a value of the pickle
  bool is_big_endian = false;
};

/// `shape` of elements of `type`.
void describe(NumpyArray& array, const PickleValue& shape, const PickleValue& type, const PickleValue& values,
              const ByteStream::Fail& fail) {
  const auto& lengths = expect<PickleList>(shape, "a tuple of sizes", fail).items;
  const auto& dtype = expect<NumpyDType>(type, "a dtype", fail);
  if (lengths.size() > kMaxRank)
    fail(str("expected an array of at most ", kMaxRank, " dimensions, got ", lengths.size()));
  array.type = dtype.name.substr(0, 20);
  array.is_big_endian = dtype.is_big_endian;
  array.sizes.clear();
  array.bytes = nullptr;
  if (values.as<std::string>() == nullptr && array.type == "O8") return;  // a list of objects
  const auto& bytes = expect<std::string>(values, "an array's bytes", fail);
  uint64_t count = dtype.bytes();
  for (const PickleRef length : lengths) {
    array.sizes.push_back(expect<int64_t>(*length, "a size", fail));
    if (array.sizes.back() < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(array.sizes.back()), &count))
      fail(str("expected sizes of an array of ", bytes.size(), " bytes, got ", array.sizes.back()));
  }
  if (dtype.bytes() != 0 && count != bytes.size())
    fail(str("expected an array of ", count, " bytes, got ", bytes.size()));
  array.bytes = &bytes;
}

void reconstruct(const PickleList&, PickleValue& result, const ByteStream::Fail&) {
  result.is = std::make_unique<NumpyArray>();
}

/// NumPy 2 by protocol 5: (bytes, dtype, sizes, order[, axes]).
void from_buffer(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  const auto& parts = arguments.items;
  if (parts.size() < 4) fail(str("_frombuffer: expected 4 values, got ", parts.size()));
  auto array = std::make_unique<NumpyArray>();
  describe(*array, *parts[2], *parts[1], *parts[0], fail);
  array->is_fortran = expect<std::string>(*parts[3], "the order of an array", fail) != "C";
  result.is = std::move(array);
}

void dtype(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  if (arguments.items.empty()) fail("dtype: expected its name, got none");
  result.is = std::make_unique<NumpyDType>(expect<std::string>(*arguments.items[0], "a dtype's name", fail));
}

void ndarray(const PickleList&, PickleValue&, const ByteStream::Fail& fail) {
  fail("expected an array by _reconstruct, got a call of ndarray");
}

uint64_t element_bits(const NumpyArray& array, size_t index, size_t size) {
  uint64_t bits = 0;
  for (size_t i = 0; i < size; ++i) {
    const size_t place = array.is_big_endian ? size - 1 - i : i;
    bits |= uint64_t{static_cast<unsigned char>((*array.bytes)[index * size + place])} << (8 * i);
  }
  return bits;
}

double from_half(uint64_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
  const double size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

/// scalar(dtype, bytes): a number or bool as such, a text or date as an array of one element.
void scalar(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  if (arguments.items.size() != 2)
    fail(str("scalar: expected a dtype and bytes, got ", arguments.items.size(), " values"));
  auto array = std::make_unique<NumpyArray>();
  PickleValue no_sizes;
  no_sizes.is = PickleList{{}, true};
  describe(*array, no_sizes, *arguments.items[0], *arguments.items[1], fail);
  const std::string& type = array->type;
  if (type == "b1")
    result.is = (*array->bytes)[0] != '\0';
  else if (type == "f8")
    result.is = std::bit_cast<double>(element_bits(*array, 0, 8));
  else if (type == "f4")
    result.is = double{std::bit_cast<float>(static_cast<uint32_t>(element_bits(*array, 0, 4)))};
  else if (type == "f2")
    result.is = from_half(element_bits(*array, 0, 2));
  else if (type.size() == 2 && (type[0] == 'i' || type[0] == 'u'))
    result.is = array->integer(0, fail);
  else
    result.is = std::move(array);
}

const struct {
  const char *module, *name;
  PickleFunction function;
} kFunctions[] = {
    {"collections", "OrderedDict", PickleFunction(ordered_dict)},
    {"collections", "Counter", PickleFunction(make_counter)},
    {"collections", "defaultdict", PickleFunction(default_dict)},
    {"argparse", "Namespace", PickleFunction(make_namespace)},
    {"types", "SimpleNamespace", PickleFunction(make_namespace)},
    {"pathlib", "PosixPath", PickleFunction(make_path)},
    {"pathlib", "WindowsPath", PickleFunction(make_path)},
    {"pathlib", "PurePosixPath", PickleFunction(make_path)},
    {"pathlib", "PureWindowsPath", PickleFunction(make_path)},
    {"pathlib._local", "PosixPath", PickleFunction(make_path)},  // Python 3.13
    {"pathlib._local", "WindowsPath", PickleFunction(make_path)},
    {"_codecs", "encode", PickleFunction(encode)},
    {"__builtin__", "set", PickleFunction(make_set)},
    {"builtins", "set", PickleFunction(make_set)},
    {"__builtin__", "frozenset", PickleFunction(make_set)},
    {"builtins", "frozenset", PickleFunction(make_set)},
    {"__builtin__", "bytearray", PickleFunction(make_bytearray)},
    {"builtins", "bytearray", PickleFunction(make_bytearray)},
    {"__builtin__", "bytes", PickleFunction(make_bytearray)},
    {"builtins", "bytes", PickleFunction(make_bytearray)},
    {"__builtin__", "complex", PickleFunction(make_complex)},
    {"builtins", "complex", PickleFunction(make_complex)},
    {"numpy.core.multiarray", "_reconstruct", PickleFunction(reconstruct)},
    {"numpy._core.multiarray", "_reconstruct", PickleFunction(reconstruct)},  // NumPy 2
    {"numpy.core.numeric", "_frombuffer", PickleFunction(from_buffer)},
    {"numpy._core.numeric", "_frombuffer", PickleFunction(from_buffer)},
    {"numpy.core.multiarray", "scalar", PickleFunction(scalar)},
    {"numpy._core.multiarray", "scalar", PickleFunction(scalar)},
    {"numpy", "ndarray", PickleFunction(ndarray)},
    {"numpy", "dtype", PickleFunction(dtype)},
};
constexpr const char* kTypes[] = {"int", "long", "float", "str", "unicode", "bool", "list", "dict", "tuple", "object"};

}  // namespace

/// (1, sizes, dtype, whether columns come first, bytes)
void NumpyArray::build(const PickleValue& state, const ByteStream::Fail& fail) {
  const auto& parts = expect<PickleList>(state, "a tuple", fail).items;
  if (parts.size() != 5) fail(str("expected an array of 5 parts, got ", parts.size()));
  describe(*this, *parts[1], *parts[2], *parts[4], fail);
  is_fortran = expect<bool>(*parts[3], "a bool", fail);
}

int64_t NumpyArray::integer(size_t index, const ByteStream::Fail& fail) const {
  const bool is_signed = type.starts_with('i');
  const size_t size = type.size() == 2 ? static_cast<size_t>(type[1] - '0') : 0;
  if ((!is_signed && !type.starts_with('u')) || size == 0 || size > 8 || bytes == nullptr)
    fail(str("expected whole numbers, got an array of ", type.empty() ? "nothing" : type));
  const uint64_t bits = element_bits(*this, index, size);
  if (is_signed) return static_cast<int64_t>(bits << (64 - 8 * size)) >> (64 - 8 * size);
  if (bits > static_cast<uint64_t>(INT64_MAX)) fail(str("expected whole numbers below 2^63, got ", bits));
  return static_cast<int64_t>(bits);
}

const PickleObject* find_usual(const std::string& module, const std::string& name) {
  for (const auto& row : kFunctions)
    if (module == row.module && name == row.name) return &row.function;
  if (module == "__builtin__" || module == "builtins")
    if (std::find(std::begin(kTypes), std::end(kTypes), name) != std::end(kTypes)) return &kType;
  return nullptr;
}

}  // namespace weft
