// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>

#include "io/atomic_file.h"
#include "io/file_kind.h"
#include "io/json.h"
#include "io/seal.h"

namespace weft {
namespace {

// Reading: keys in a search tree; ordered_json would search a million names linearly.
using Json = nlohmann::json;

constexpr const char* kSealName = "seal";
constexpr uint64_t kLongestHeader = 100'000'000;  // the format's own limit

using Entry = SafetensorsEntry;

struct Header {
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  uint64_t data_start = 0;
};

/// The dtype of the parts of complex numbers; empty: no such type.
std::string_view parts_of(std::string_view complex) {
  return complex == "C64" ? "F32" : complex == "C128" ? "F64" : std::string_view();
}

const StoredDType* parse_dtype(const FileReader& file, const std::string& name, const Json& entry) {
  const auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string()) file.bad("tensor '", name, "': expected a dtype, got none");
  const auto& text = found->get_ref<const std::string&>();
  const std::string_view parts = parts_of(text);
  if (const StoredDType* stored = find_stored_dtype(parts.empty() ? text : parts)) return stored;
  file.bad("tensor '", name,
           "': expected dtype F32, F64, C64, C128, BF16, F16, F8_E4M3, F8_E5M2, I64, I32, I16, I8, U32, U16, U8 ",
           "or BOOL, got '", text, "'");
}

Shape parse_shape(const FileReader& file, const std::string& name, const Json& entry) {
  const auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array()) file.bad("tensor '", name, "': expected a shape, got none");
  const bool complex = !parts_of(entry["dtype"].get_ref<const std::string&>()).empty();
  const size_t most = kMaxRank - (complex ? 1 : 0);
  if (found->size() > most)
    file.bad("tensor '", name, "': expected at most ", most, " dimensions, got ", found->size());
  Shape sizes;
  for (const Json& size : *found) {
    // A size beyond 2^60 is no size; the limit keeps the arithmetic below from wrapping.
    if (!size.is_number_unsigned() || size.get<uint64_t>() > (uint64_t{1} << 60))
      file.bad("tensor '", name, "': expected sizes that are whole numbers, got shape ", found->dump());
    sizes.push_back(size.get<int64_t>());
  }
  if (complex) sizes.push_back(2);
  return sizes;
}

/// The bytes that a tensor needs; an error if that overflows.
uint64_t byte_count(const FileReader& file, const Entry& entry) {
  if (!is_countable(entry.sizes))
    file.bad("tensor '", entry.name, "': expected a size that fits memory, got shape ", entry.sizes);
  return static_cast<uint64_t>(entry.sizes.numel()) * entry.stored->bytes;  // below 2^63
}

Entry parse_entry(const FileReader& file, const std::string& name, const Json& json, uint64_t data_size) {
  if (!json.is_object()) file.bad("tensor '", name, "': expected an object with dtype, shape and data_offsets");
  Entry entry{name, parse_dtype(file, name, json), parse_shape(file, name, json), 0, 0};
  const auto offsets = json.find("data_offsets");
  if (offsets == json.end() || !offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned())
    file.bad("tensor '", name, "': expected data_offsets [begin, end]");
  entry.begin = (*offsets)[0].get<uint64_t>();
  entry.end = (*offsets)[1].get<uint64_t>();
  if (entry.begin > entry.end || entry.end > data_size)
    file.bad("tensor '", name, "': expected a range within ", data_size, " bytes of data, got [", entry.begin, ", ",
             entry.end, "). Is the file cut short?");
  const uint64_t needed = byte_count(file, entry);
  if (entry.end - entry.begin != needed)
    file.bad("tensor '", name, "': expected ", needed, " bytes for ", entry.stored->name, entry.sizes,
             ", got a range of ", entry.end - entry.begin);
  return entry;
}

/// Sorts the entries by the position of their data; the ranges must be adjacent from 0 to the end.
void sort_by_range(const FileReader& file, std::vector<Entry>& entries, uint64_t data_size) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t expected = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != expected)
      file.bad("tensor '", entry.name, "' begins at byte ", entry.begin, " of the data, expected ", expected,
               entry.begin < expected ? " (two tensors overlap)" : " (a hole)");
    expected = entry.end;
  }
  if (expected != data_size)
    file.bad("the tensors end at byte ", expected, " of the data, expected ", data_size, " (bytes of no tensor)");
}

/// Takes the values of a header singly, as the parser finishes them: all at once, as JSON, would take forty times the
/// header's memory.
class HeaderParts {
 public:
  HeaderParts(const FileReader& file, MemoryBudget& memory, Header& header)
      : file_(file), memory_(memory), header_(header), data_size_(file.size() - header.data_start) {}

  /// Whether the parser keeps the value: the header as a whole alone.
  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (event == Event::key && depth == 1) {
      name_ = value.get<std::string>();
      values_ = 0;
    }
    if (depth > 1 && (event == Event::key || event == Event::value)) charge(value);
    if (depth != 1 || (event != Event::value && event != Event::object_end && event != Event::array_end)) return true;
    memory_.take(kEntryBytes + 2 * name_.size(), "descriptions of tensors",
                 [this](const std::string& text) { file_.bad(text); });
    if (name_ == "__metadata__")
      take_metadata(value);
    else
      header_.entries.push_back(parse_entry(file_, name_, value, data_size_));
    return false;
  }

 private:
  static constexpr uint64_t kEntryBytes = 900;  // here, in WeightsFile and its index, and while vectors grow
  static constexpr uint64_t kWordBytes = 200;   // cost of metadata: as JSON and then in a map
  static constexpr int kMostValues = 100;       // limit of one tensor, which needs three names and their values

  /// Counts the memory until the object of a depth of 1 ends.
  void charge(const Json& value) {
    if (name_ == "__metadata__")
      memory_.take(kWordBytes + (value.is_string() ? 2 * value.get_ref<const std::string&>().size() : 0), "metadata",
                   [this](const std::string& text) { file_.bad(text); });
    else if (++values_ > kMostValues)
      file_.bad("tensor '", name_, "': expected dtype, shape and data_offsets, got more than ", kMostValues, " values");
  }

  void take_metadata(const Json& value) {
    if (!value.is_object()) file_.bad("expected __metadata__ to be an object of strings");
    for (const auto& [key, word] : value.items()) {
      if (!word.is_string()) file_.bad("expected __metadata__ to hold strings, got another value for '", key, "'");
      header_.metadata[key] = word.get<std::string>();
    }
  }

  const FileReader& file_;
  MemoryBudget& memory_;
  Header& header_;
  uint64_t data_size_;
  std::string name_;
  int values_ = 0;  // and names, of this one
};

/// Only one of two entries with a name could be read.
void check_names(const FileReader& file, const std::vector<Entry>& entries) {
  std::vector<std::string_view> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) file.bad("tensor '", *twice, "' occurs twice");
}

Header read_header(const FileReader& file, MemoryBudget& memory) {
  uint64_t length = 0;
  if (file.size() < 8) file.bad("expected at least 8 bytes, got ", file.size(), ". Is the file cut short?");
  file.read(0, &length, 8);
  if (length > kLongestHeader && !kind_of(file).name.empty()) refuse(file, "safetensors");
  if (length > kLongestHeader)
    file.bad("expected a header of at most ", kLongestHeader, " bytes, got ", length, ". Is it a safetensors file?");
  if (length > file.size() - 8)
    file.bad("expected a header of ", length, " bytes, got ", file.size() - 8, ". Is the file cut short?");
  std::string text(length, '\0');
  file.read(8, text.data(), length);
  if (text.empty() || text[0] != '{') file.bad("expected a header that begins with '{'. Is it a safetensors file?");
  constexpr int kDeepest = 8;  // the format itself needs three
  if (json_nesting(text) > kDeepest)
    file.bad("expected a header that nests at most ", kDeepest, " levels deep, got ", json_nesting(text));
  Header header;
  header.data_start = 8 + length;
  HeaderParts parts(file, memory, header);
  const Json json = Json::parse(text, std::ref(parts), false);
  if (!json.is_object()) file.bad("expected a JSON header, got damaged text");
  check_names(file, header.entries);
  sort_by_range(file, header.entries, file.size() - header.data_start);
  return header;
}

void write(const std::filesystem::path& path, const std::string& what, const StateDict& state,
           const std::map<std::string, std::string>& metadata, bool sealed, int keep,
           const std::set<std::string>& complex = {}) {
  WEFT_CHECK(state.scalars.empty(), "safetensors: expected tensors only, got the number '",
             state.scalars.empty() ? "" : printable(state.scalars[0].name), "'. A checkpoint holds numbers too");
  for (const auto& [name, tensor] : state.tensors)
    WEFT_CHECK(tensor.defined(), "safetensors: expected a tensor as '", printable(name), "', got none");
  size_t complex_ones = 0;
  for (const auto& [name, tensor] : state.tensors) {
    if (!complex.contains(name)) continue;
    ++complex_ones;
    WEFT_CHECK(
        (tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64) && tensor.dim() > 0 && tensor.size(-1) == 2,
        "safetensors: expected the parts [..., 2] of complex numbers in f32 or f64 as '", printable(name), "', got ",
        tensor);
  }
  WEFT_CHECK(complex_ones == complex.size(), "safetensors: expected tensors of all ", complex.size(),
             " complex names, got ", complex_ones);
  // Wide elements first keeps every tensor aligned to its element; then by name, as the reference writer does.
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& entry : state.tensors) order.push_back(&entry);
  const auto place = [&](const NamedTensor& one) {
    const int bytes = static_cast<int>(size_of(one.tensor.dtype())) * (complex.contains(one.name) ? 2 : 1);
    return std::pair(-bytes, std::string_view(one.name));
  };
  std::sort(order.begin(), order.end(),
            [&](const NamedTensor* a, const NamedTensor* b) { return place(*a) < place(*b); });
  std::vector<SafetensorsTensor> tensors;
  for (const NamedTensor* entry : order) {
    const Tensor& tensor = entry->tensor;
    const Shape sizes = tensor.sizes();
    const bool is_complex = complex.contains(entry->name);
    const std::string_view dtype = !is_complex                     ? stored_name(tensor.dtype())
                                   : tensor.dtype() == DType::f32 ? "C64"
                                                                   : "C128";
    tensors.push_back(
        {entry->name, std::string(dtype), {sizes.begin(), sizes.end() - (is_complex ? 1 : 0)}, tensor.nbytes()});
  }
  if (sealed) tensors.push_back({kSealName, "U8", {kSealBytes}, kSealBytes});
  const std::string header = safetensors_header(tensors, metadata);

  AtomicFile file(path, what);
  AtomicFile::Writer out(file);
  out.write(header.data(), header.size());
  for (const NamedTensor* entry : order) {
    const Tensor dense = entry->tensor.detach().to(Device{}).contiguous();
    out.write(dense.raw_data(), dense.nbytes());
  }
  out.close();
  if (sealed) seal(file);
  file.commit(keep);
}

}  // namespace

std::string safetensors_header(const std::vector<SafetensorsTensor>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  const auto dump = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + dump(metadata);
  std::unordered_set<std::string_view> names{"__metadata__"};
  uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    WEFT_CHECK(names.insert(tensor.name).second, "safetensors: expected each name once, got '", printable(tensor.name),
               "' twice");
    try {
      static_cast<void>(Json(tensor.name).dump());
    } catch (const Json::exception&) {  // two such names could become one, and no reader would know them
      fail("safetensors: expected names in UTF-8, got '", printable(tensor.name), "'");
    }
    text += str(text.size() > 1 ? "," : "", dump(tensor.name), ":{\"dtype\":\"", tensor.dtype, "\",\"shape\":",
                dump(tensor.sizes), ",\"data_offsets\":[", offset, ',', offset + tensor.bytes, "]}");
    offset += tensor.bytes;
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  WEFT_CHECK(length <= kLongestHeader, "safetensors: expected a header of at most ", kLongestHeader, " bytes, got ",
             length);
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : SafetensorsReader(path, *std::make_unique<MemoryBudget>()) {}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path, MemoryBudget& memory)
    : file_(path, "safetensors") {
  memory.opened(file_.size());
  Header header = read_header(file_, memory);
  entries_ = std::move(header.entries);
  metadata_ = std::move(header.metadata);
  data_start_ = header.data_start;
}

Tensor SafetensorsReader::read(size_t index) const {
  const Entry& entry = entries_.at(index);
  return read_stored(
      *entry.stored, entry.sizes, [&](void* to, uint64_t bytes) { file_.read(data_start_ + entry.begin, to, bytes); },
      [&](std::string_view text) { file_.bad("tensor '", entry.name, "': ", text); });
}

Tensor SafetensorsReader::read_block(size_t index, const WeightBlock& block) const {
  const Entry& entry = entries_.at(index);
  Shape sizes = entry.sizes;
  uint64_t column = entry.stored->bytes;  // bytes of an element of the first two dimensions
  for (int d = 2; d < sizes.rank(); ++d) column *= static_cast<uint64_t>(sizes[d]);
  const int64_t all = sizes.rank() > 1 ? sizes[1] : 1, columns = block.columns < 0 ? all - block.column : block.columns;
  WEFT_CHECK(sizes.rank() > 0 && block.row >= 0 && block.rows >= 0 && block.row + block.rows <= sizes[0] &&
                 block.column >= 0 && columns >= 0 && block.column + columns <= all,
             "safetensors: '", entry.name, "' ", sizes, " has no rows ", block.row, " + ", block.rows, ", columns ",
             block.column, " + ", columns);
  sizes[0] = block.rows;
  if (sizes.rank() > 1) sizes[1] = columns;
  const auto at = [&](int64_t row) {
    return data_start_ + entry.begin + static_cast<uint64_t>(row * all + block.column) * column;
  };
  const auto read = [&](void* to, uint64_t bytes) {
    if (columns == all) return file_.read(at(block.row), to, bytes);
    const uint64_t each = static_cast<uint64_t>(columns) * column;
    for (int64_t r = 0; r < block.rows; ++r)
      file_.read(at(block.row + r), static_cast<char*>(to) + static_cast<uint64_t>(r) * each, each);
  };
  return read_stored(*entry.stored, sizes, read,
                     [&](std::string_view text) { file_.bad("tensor '", entry.name, "': ", text); });
}

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  const SafetensorsReader file(path);
  SafetensorsFile result;
  result.metadata = file.metadata();
  for (size_t i = 0; i < file.entries().size(); ++i)
    result.state.tensors.push_back({file.entries()[i].name, file.read(i)});
  return result;
}

void write_safetensors(const std::filesystem::path& path, const StateDict& state,
                       const std::map<std::string, std::string>& metadata, const std::set<std::string>& complex) {
  write(path, "safetensors", state, metadata, /*sealed=*/false, /*keep=*/1, complex);
}

void write_sealed_safetensors(const std::filesystem::path& path, const std::string& what, const StateDict& state,
                              const std::map<std::string, std::string>& metadata, int keep) {
  write(path, what, state, metadata, /*sealed=*/true, keep);
}

}  // namespace weft
