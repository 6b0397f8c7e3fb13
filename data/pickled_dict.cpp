// SPDX-License-Identifier: Apache-2.0
#include "data/pickled_dict.h"

#include <algorithm>

#include "core/text.h"
#include "io/file_kind.h"
#include "io/pickle/unpickler.h"
#include "io/pickle/usual_names.h"

namespace weft::data {
namespace {

constexpr uint64_t kMostOpcodes = 4'000'000;  // CIFAR-100 has some 300,000
constexpr size_t kShown = 100;                // bytes of a key in an error

}  // namespace

PickledDict::PickledDict(const std::filesystem::path& path) : file_(path, "data") {
  const ByteStream::Fail fail = [this](const std::string& text) { file_.bad(text); };
  ByteStream stream([this](uint64_t offset, void* to, uint64_t bytes) { file_.read(offset, to, bytes); }, 0,
                    file_.size(), fail);
  uint8_t first = 0;
  file_.read(0, &first, std::min<uint64_t>(file_.size(), 1));
  if (first != 0x80) refuse_known(file_, "a pickled dict of arrays and lists");  // protocols 0 and 1 begin otherwise
  const PickleVocabulary arrays{.holds = "images and labels", .most_opcodes = kMostOpcodes, .find = find_usual};
  pickle_ = unpickle(stream, arrays, fail);
  if (pickle_.root->as<PickleDict>() == nullptr)
    file_.bad("expected a pickled dict of arrays and lists, got ", pickle_.root->kind());
}

const PickleValue& PickledDict::at(std::string_view key) const {
  const auto& items = pickle_.root->as<PickleDict>()->items;
  const auto found =
      std::find_if(items.rbegin(), items.rend(), [&](const PickleDict::Item& item) {  // the last one of a key counts
        const auto* text = item.first->as<std::string>();
        return text != nullptr && *text == key;
      });
  if (found != items.rend()) return *found->second;
  std::vector<std::string> others;
  for (const auto& [name, value] : items)
    if (const auto* text = name->as<std::string>()) others.push_back(text->substr(0, kShown));
  file_.bad("expected a key '", key, "', got none.", others.empty() ? "" : " There are: " + joined(others, 10));
}

template <class T>
const T& PickledDict::at(std::string_view key, const char* expected) const {
  const PickleValue& value = at(key);
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
  const auto* array = at(key).as<NumpyArray>();
  if (array == nullptr) {
    for (const int64_t* number : list<int64_t>(key, "a whole number")) numbers.push_back(*number);
    return numbers;
  }
  // A column [n, 1] is a list of n numbers too.
  const bool is_list = array->sizes.size() == 1 || (array->sizes.size() == 2 && array->sizes[1] == 1);
  if (!is_list) file_.bad("expected an array of one dimension as '", key, "', got ", array->sizes.size());
  for (int64_t i = 0; i < array->sizes[0]; ++i)
    numbers.push_back(
        array->integer(static_cast<size_t>(i), [&](const std::string& text) { file_.bad("'", key, "': ", text); }));
  return numbers;
}

std::vector<std::string> PickledDict::texts(std::string_view key) const {
  std::vector<std::string> texts;
  uint64_t left = file_.size();  // a list may repeat a text
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
  if (array.type != "u1" || array.bytes == nullptr)
    file_.bad("expected an array of u1 (uint8) as '", key, "', got ", array.type);
  if (array.is_fortran)
    file_.bad("expected an array in C's order as '", key, "', got Fortran's. Write numpy.ascontiguousarray of it");
  return {array.sizes[0], array.sizes[1], reinterpret_cast<const uint8_t*>(array.bytes->data())};
}

}  // namespace weft::data
