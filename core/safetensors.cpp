// SPDX-License-Identifier: Apache-2.0
#include "core/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "core/atomic_file.h"
#include "core/printable.h"

namespace weft {
namespace {

// Reading: keys in a search tree, as the ordered kind would look for each of a million names one by one.
using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian and copied as it is");

constexpr uint64_t kLongestHeader = 100'000'000;  // the format's own limit

constexpr std::array<std::pair<const char*, DType>, 8> kDTypes{{{"F32", DType::f32},
                                                                {"F64", DType::f64},
                                                                {"BF16", DType::bf16},
                                                                {"F16", DType::f16},
                                                                {"I64", DType::i64},
                                                                {"I32", DType::i32},
                                                                {"U8", DType::u8},
                                                                {"BOOL", DType::boolean}}};

const char* format_name(DType dtype) {
  return std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& row) { return row.second == dtype; })->first;
}

/// One tensor of the header; its bytes are [begin, end) of the data behind the header.
struct Entry {
  std::string name;
  DType dtype;
  Shape sizes;
  uint64_t begin, end;
};

struct Header {
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  uint64_t data_start = 0;
};

/// The file being read: its size, exact reads, and errors that name it.
class Source {
 public:
  explicit Source(const std::filesystem::path& path) : path_(path.string()) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) bad("expected to open it, got '", std::strerror(errno), "'");
    struct stat facts {};
    if (::fstat(fd_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
      ::close(fd_);
      bad("expected a file, got something else");
    }
    size_ = static_cast<uint64_t>(facts.st_size);
  }
  ~Source() { ::close(fd_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  uint64_t size() const { return size_; }

  void read(uint64_t offset, void* to, uint64_t bytes) const {
    auto* out = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = ::pread(fd_, out, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        bad("expected to read ", bytes, " bytes at ", offset, ", got '", got ? std::strerror(errno) : "end of file",
            "'");
      out += got;
      offset += static_cast<uint64_t>(got);
      bytes -= static_cast<uint64_t>(got);
    }
  }

  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail("safetensors: ", printable(str(path_, ": ", parts...)));
  }

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

DType parse_dtype(const Source& file, const std::string& name, const Json& entry) {
  const auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string()) file.bad("tensor '", name, "': expected a dtype, got none");
  const auto& text = found->get_ref<const std::string&>();
  for (const auto& [word, dtype] : kDTypes)
    if (text == word) return dtype;
  file.bad("tensor '", name, "': expected dtype F32, F64, BF16, F16, I64, I32, U8 or BOOL, got '", text, "'");
}

Shape parse_shape(const Source& file, const std::string& name, const Json& entry) {
  const auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array()) file.bad("tensor '", name, "': expected a shape, got none");
  if (found->size() > kMaxRank)
    file.bad("tensor '", name, "': expected at most ", kMaxRank, " dimensions, got ", found->size());
  Shape sizes;
  for (const Json& size : *found) {
    // A size beyond 2^60 is no size; the limit keeps the arithmetic below from wrapping.
    if (!size.is_number_unsigned() || size.get<uint64_t>() > (uint64_t{1} << 60))
      file.bad("tensor '", name, "': expected sizes that are whole numbers, got shape ", found->dump());
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

/// The bytes that a tensor needs, or an error when that overflows.
uint64_t byte_count(const Source& file, const Entry& entry) {
  uint64_t bytes = size_of(entry.dtype);
  for (const int64_t size : entry.sizes)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes))
      file.bad("tensor '", entry.name, "': expected a size that fits memory, got shape ", entry.sizes);
  return bytes;
}

Entry parse_entry(const Source& file, const std::string& name, const Json& json, uint64_t data_size) {
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
    file.bad("tensor '", name, "': expected ", needed, " bytes for ", entry.dtype, entry.sizes, ", got a range of ",
             entry.end - entry.begin);
  return entry;
}

/// Sorts the entries as their data lies in the file; the ranges must follow each other from 0 to the end.
void sort_by_range(const Source& file, std::vector<Entry>& entries, uint64_t data_size) {
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
    file.bad("the tensors end at byte ", expected, " of the data, expected ", data_size, " (bytes that nobody owns)");
}

/// How deep objects and lists nest, without building them: what nests a million levels deep breaks stacks later.
int nesting(const std::string& json) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '\\' && quoted)
      ++i;
    else if (json[i] == '"')
      quoted = !quoted;
    else if (!quoted && (json[i] == '{' || json[i] == '['))
      deepest = std::max(deepest, ++depth);
    else if (!quoted && (json[i] == '}' || json[i] == ']'))
      --depth;
  }
  return deepest;
}

Header read_header(const Source& file) {
  uint64_t length = 0;
  if (file.size() < 8) file.bad("expected at least 8 bytes, got ", file.size(), ". Is the file cut short?");
  file.read(0, &length, 8);
  if (length > kLongestHeader)
    file.bad("expected a header of at most ", kLongestHeader, " bytes, got ", length, ". Is it a safetensors file?");
  if (length > file.size() - 8)
    file.bad("expected a header of ", length, " bytes, got ", file.size() - 8, ". Is the file cut short?");
  std::string text(length, '\0');
  file.read(8, text.data(), length);
  if (text.empty() || text[0] != '{') file.bad("expected a header that begins with '{'. Is it a safetensors file?");
  constexpr int kDeepest = 8;  // the format itself needs three
  if (nesting(text) > kDeepest)
    file.bad("expected a header that nests at most ", kDeepest, " levels deep, got ", nesting(text));
  // A name that occurs twice counts once, the last time; the bytes of the first are then a hole.
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) file.bad("expected a JSON header, got damaged text");

  Header header;
  header.data_start = 8 + length;
  const uint64_t data_size = file.size() - header.data_start;
  for (const auto& [name, value] : json.items()) {
    if (name != "__metadata__") {
      header.entries.push_back(parse_entry(file, name, value, data_size));
      continue;
    }
    if (!value.is_object()) file.bad("expected __metadata__ to be an object of texts");
    for (const auto& [key, word] : value.items()) {
      if (!word.is_string()) file.bad("expected __metadata__ to be texts, got another value for '", key, "'");
      header.metadata[key] = word.get<std::string>();
    }
  }
  sort_by_range(file, header.entries, data_size);
  return header;
}

}  // namespace

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  const Source file(path);
  Header header = read_header(file);
  SafetensorsFile result;
  result.metadata = std::move(header.metadata);
  for (const Entry& entry : header.entries) {
    const Tensor tensor = Tensor::empty(entry.sizes, entry.dtype);
    if (entry.end > entry.begin) file.read(header.data_start + entry.begin, tensor.raw_data(), entry.end - entry.begin);
    if (entry.dtype == DType::boolean) {
      const auto* bytes = static_cast<const uint8_t*>(tensor.raw_data());
      if (std::any_of(bytes, bytes + tensor.numel(), [](uint8_t byte) { return byte > 1; }))
        file.bad("tensor '", entry.name, "': expected 0 or 1 for each BOOL, got another byte");
    }
    result.state.tensors.push_back({entry.name, tensor});
  }
  return result;
}

void write_safetensors(const std::filesystem::path& path, const StateDict& state,
                       const std::map<std::string, std::string>& metadata) {
  WEFT_CHECK(state.scalars.empty(), "safetensors: expected tensors only, got the number '",
             state.scalars.empty() ? "" : state.scalars[0].name, "'. A checkpoint holds numbers too");
  // Wide elements first keeps every tensor aligned to its element; then by name, as the reference writer does.
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& entry : state.tensors) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return std::pair(-static_cast<int>(size_of(a->tensor.dtype())), std::string_view(a->name)) <
           std::pair(-static_cast<int>(size_of(b->tensor.dtype())), std::string_view(b->name));
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const NamedTensor* entry : order) {
    WEFT_CHECK(entry->name != "__metadata__" && !header.contains(entry->name),
               "safetensors: expected each name once, got '", entry->name, "' twice");
    const Shape sizes = entry->tensor.sizes();
    const uint64_t end = offset + entry->tensor.nbytes();
    header[entry->name] = {{"dtype", format_name(entry->tensor.dtype())},
                           {"shape", std::vector<int64_t>(sizes.begin(), sizes.end())},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  WEFT_CHECK(length <= kLongestHeader, "safetensors: expected a header of at most ", kLongestHeader, " bytes, got ",
             length);

  AtomicFile file(path, "safetensors");
  AtomicFile::Writer out(file);
  out.write(&length, 8);
  out.write(text.data(), text.size());
  for (const NamedTensor* entry : order) {
    const Tensor dense = entry->tensor.detach().to(Device{}).contiguous();
    out.write(dense.raw_data(), dense.nbytes());
  }
  out.close();
  file.commit();
}

}  // namespace weft
