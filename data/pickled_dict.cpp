// SPDX-License-Identifier: Apache-2.0
#include "data/pickled_dict.h"

#include <algorithm>

#include "core/shape.h"
#include "io/pickle/unpickler.h"

namespace weft::data {
namespace {

constexpr uint64_t kMostOpcodes = 4'000'000;  // CIFAR-100 has some 300,000

template <class T>
const T& expect(const PickleValue& value, const char* expected, const ByteStream::Fail& fail) {
  const T* found = value.as<T>();
  if (found == nullptr) fail(str("expected ", expected, ", got ", value.kind()));
  return *found;
}

struct NumpyDType final : PickleObject {
  explicit NumpyDType(const std::string& text) : name(text) {}
  const char* kind() const override { return "a dtype"; }
  void build(const PickleValue&, const ByteStream::Fail&) override {}  // its state says nothing of bytes

  const std::string& name;  // a value of the pickle
};

struct NumpyArray final : PickleObject {
  const char* kind() const override { return "an array"; }
  void build(const PickleValue& state, const ByteStream::Fail& fail) override;

  std::vector<int64_t> sizes;
  const std::string* bytes = nullptr;  // a value of the pickle
};

/// (1, sizes, dtype, whether columns come first, bytes)
void NumpyArray::build(const PickleValue& state, const ByteStream::Fail& fail) {
  const auto& parts = expect<PickleList>(state, "a tuple", fail).items;
  if (parts.size() != 5) fail(str("expected an array of 5 parts, got ", parts.size()));
  const auto& lengths = expect<PickleList>(*parts[1], "a tuple of sizes", fail).items;
  const std::string& type = expect<NumpyDType>(*parts[2], "a dtype", fail).name;
  const auto& values = expect<std::string>(*parts[4], "an array's bytes", fail);
  if (type != "u1") fail(str("expected an array of u1, got ", type.substr(0, 20)));
  if (expect<bool>(*parts[3], "a bool", fail)) fail("expected an array in C's order, got Fortran's");
  if (lengths.size() > kMaxRank)
    fail(str("expected an array of at most ", kMaxRank, " dimensions, got ", lengths.size()));
  uint64_t count = 1;
  sizes.clear();
  for (const PickleRef length : lengths) {
    sizes.push_back(expect<int64_t>(*length, "a size", fail));
    if (sizes.back() < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(sizes.back()), &count))
      fail(str("expected sizes of an array of ", values.size(), " bytes, got ", sizes.back()));
  }
  if (count != values.size()) fail(str("expected an array of ", count, " bytes, got ", values.size()));
  bytes = &values;
}

void reconstruct(const PickleList&, PickleValue& result, const ByteStream::Fail&) {
  result.is = std::make_unique<NumpyArray>();
}

void dtype(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  if (arguments.items.empty()) fail("dtype: expected its name, got none");
  result.is = std::make_unique<NumpyDType>(expect<std::string>(*arguments.items[0], "a dtype's name", fail));
}

void ndarray(const PickleList&, PickleValue&, const ByteStream::Fail& fail) {
  fail("expected an array by _reconstruct, got a call of ndarray");
}

const struct {
  const char *module, *name;
  PickleFunction function;
} kFunctions[] = {
    {"numpy.core.multiarray", "_reconstruct", PickleFunction(reconstruct)},
    {"numpy._core.multiarray", "_reconstruct", PickleFunction(reconstruct)},  // NumPy 2
    {"numpy", "ndarray", PickleFunction(ndarray)},
    {"numpy", "dtype", PickleFunction(dtype)},
};

const PickleObject* find_global(const std::string& module, const std::string& name) {
  for (const auto& row : kFunctions)
    if (module == row.module && name == row.name) return &row.function;
  return nullptr;
}

}  // namespace

PickledDict::PickledDict(const std::filesystem::path& path) : file_(path, "data") {
  const ByteStream::Fail fail = [this](const std::string& text) { file_.bad(text); };
  ByteStream stream([this](uint64_t offset, void* to, uint64_t bytes) { file_.read(offset, to, bytes); }, 0,
                    file_.size(), fail);
  const PickleVocabulary arrays{
      .holds = "images and labels", .most_opcodes = kMostOpcodes, .has_bytes = true, .find = find_global};
  pickle_ = unpickle(stream, arrays, fail);
  expect<PickleDict>(*pickle_.root, "a pickled dict of arrays and lists", fail);
}

template <class T>
const T& PickledDict::at(std::string_view key, const char* expected) const {
  const auto& items = pickle_.root->as<PickleDict>()->items;
  const auto found =
      std::find_if(items.rbegin(), items.rend(), [&](const PickleDict::Item& item) {  // the last one of a key counts
        const auto* text = item.first->as<std::string>();
        return text != nullptr && *text == key;
      });
  if (found == items.rend()) file_.bad("expected a key '", key, "', got none");
  const PickleValue& value = *found->second;
  const T* wanted = value.as<T>();
  if (wanted == nullptr) file_.bad("expected ", expected, " as '", key, "', got ", value.kind());
  return *wanted;
}

template <class T>
std::vector<const T*> PickledDict::list(std::string_view key, const char* expected) const {
  std::vector<const T*> values;
  for (const PickleRef item : at<PickleList>(key, "a list").items) {
    const auto* value = item->as<T>();
    if (value == nullptr)
      file_.bad("expected a list of which each is ", expected, " as '", key, "', got ", item->kind(), " in it");
    values.push_back(value);
  }
  return values;
}

std::vector<int64_t> PickledDict::integers(std::string_view key) const {
  std::vector<int64_t> numbers;
  for (const int64_t* number : list<int64_t>(key, "a whole number")) numbers.push_back(*number);
  return numbers;
}

std::vector<std::string> PickledDict::texts(std::string_view key) const {
  std::vector<std::string> texts;
  uint64_t left = file_.size();  // the same text may stand in a list again and again
  for (const std::string* text : list<std::string>(key, "a text")) {
    if (text->size() > left)
      file_.bad("expected texts as '", key, "' no longer than the file, got longer by repetition");
    left -= text->size();
    texts.push_back(*text);
  }
  return texts;
}

PickledDict::Rows PickledDict::rows(std::string_view key) const {
  const auto& array = at<NumpyArray>(key, "an array");
  if (array.sizes.size() != 2)
    file_.bad("expected an array of two dimensions as '", key, "', got ", array.sizes.size());
  return {array.sizes[0], array.sizes[1], reinterpret_cast<const uint8_t*>(array.bytes->data())};
}

}  // namespace weft::data
