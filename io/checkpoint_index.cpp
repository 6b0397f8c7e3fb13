// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_index.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "core/text.h"
#include "io/crc32c.h"
#include "io/file_kind.h"
#include "io/json.h"
#include "io/seal.h"
#include "io/stored_dtype.h"

namespace weft {
namespace {

using OrderedJson = nlohmann::ordered_json;  // parts stay in their order; objects have few keys
namespace fs = std::filesystem;

constexpr const char* kIndexFormat = "weft sharded checkpoint";  // for one shard or more
constexpr int kVersion = 2;  // 1: no strided parts, no files of several ranks; still written where there are none
constexpr uint64_t kLargestIndex = uint64_t{1} << 30;

/// Numbers as text, 0x1.8p+1: every double comes back bit by bit, infinities too, in every locale.
std::string exact(double value) {
  char text[64];
  const char* const end = std::to_chars(text, text + sizeof text, std::abs(value), std::chars_format::hex).ptr;
  return str(std::signbit(value) ? "-" : "", std::isfinite(value) ? "0x" : "", std::string_view(text, end));
}

double to_number(const OrderedJson& json) {
  const auto& text = json.get_ref<const std::string&>();
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  const bool finite = rest.starts_with("0x");
  if (finite) rest.remove_prefix(2);
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value,
                                            finite ? std::chars_format::hex : std::chars_format::general);
  WEFT_CHECK(error == std::errc() && end == rest.data() + rest.size() && finite == std::isfinite(value),
             "expected a number such as 0x1.8p+1, got '", printable(text), "'");
  return negative ? -value : value;
}

/// JSON holds UTF-8 only; any other text becomes a list of its bytes.
OrderedJson text_json(const std::string& text) {
  const OrderedJson json = text;
  try {
    static_cast<void>(json.dump());
    return json;
  } catch (const OrderedJson::exception&) {
    return std::vector<uint8_t>(text.begin(), text.end());
  }
}

std::string to_text(const OrderedJson& json) {
  if (json.is_string()) return json.get<std::string>();
  std::string bytes;
  for (const OrderedJson& byte : json) bytes += static_cast<char>(json_integer<uint8_t>(byte, "a text's byte"));
  return bytes;
}

DType parse_dtype(const std::string& text) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i)
    if (name(static_cast<DType>(i)) == text) return static_cast<DType>(i);
  fail("no such dtype: '", text, "'");
}

OrderedJson to_json(const CheckpointIndex::File& file) {
  OrderedJson pieces = OrderedJson::array();
  for (const CheckpointIndex::Piece& piece : file.pieces) {
    OrderedJson& json = pieces.emplace_back(OrderedJson{
        {"part", piece.part}, {"name", piece.name}, {"begin", piece.begin}, {"count", piece.count}});
    if (piece.of.run != 0)
      json.update({{"offset", piece.of.offset}, {"run", piece.of.run}, {"stride", piece.of.stride}});
    if (piece.writer != 0) json["writer"] = piece.writer;
  }
  OrderedJson json{{"bytes", file.bytes}, {"crc32c", file.crc32c}, {"blocks", file.blocks}, {"pieces", pieces}};
  if (file.rank >= 0) json["rank"] = file.rank;
  return json;
}

CheckpointIndex::File to_file(const OrderedJson& json) {
  CheckpointIndex::File file{
      json_integer<uint64_t>(json.at("bytes"), "bytes"), json_integer<uint32_t>(json.at("crc32c"), "crc32c"), {}};
  if (json.contains("blocks"))
    for (const OrderedJson& block : json["blocks"]) file.blocks.push_back(json_integer<uint32_t>(block, "blocks"));
  WEFT_CHECK(
      file.blocks.empty() || file.blocks.size() == (file.bytes + CheckpointIndex::kBlock - 1) / CheckpointIndex::kBlock,
      "a file of ", file.bytes, " bytes with ", file.blocks.size(), " blocks");
  for (const OrderedJson& piece : json.at("pieces")) {
    const auto integer = [&](const char* name) { return json_integer<int64_t>(piece.at(name), name); };
    file.pieces.push_back({piece.at("part").get<std::string>(), piece.at("name").get<std::string>(), integer("begin"),
                           integer("count"),
                           piece.contains("run") ? StridedPart{integer("offset"), integer("run"), integer("stride")}
                                                 : StridedPart{},
                           piece.contains("writer") ? json_integer<int>(piece["writer"], "writer") : 0});
  }
  if (json.contains("rank")) file.rank = json_integer<int>(json["rank"], "rank");
  return file;
}

OrderedJson to_json(const CheckpointIndex::Part& part) {
  OrderedJson tensors = OrderedJson::array(), scalars = OrderedJson::array();
  for (const CheckpointIndex::Entry& entry : part.tensors)
    tensors.push_back({{"name", entry.name},
                       {"dtype", name(entry.dtype)},
                       {"sizes", std::vector<int64_t>(entry.sizes.begin(), entry.sizes.end())},
                       {"layout", entry.is_ohwi ? "ohwi" : "as_stored"}});
  for (const NamedScalar& scalar : part.scalars)
    scalars.push_back({{"name", scalar.name}, {"value", exact(scalar.value)}});
  return {{"tensors", tensors}, {"scalars", scalars}};
}

CheckpointIndex::Part to_part(const OrderedJson& json) {
  CheckpointIndex::Part part;
  for (const OrderedJson& entry : json.at("tensors")) {
    std::vector<int64_t> sizes;
    for (const OrderedJson& size : entry.at("sizes")) sizes.push_back(json_integer<int64_t>(size, "sizes"));
    part.tensors.push_back({entry.at("name").get<std::string>(), parse_dtype(entry.at("dtype").get<std::string>()),
                            Shape(sizes), entry.at("layout") == "ohwi"});
  }
  for (const OrderedJson& scalar : json.at("scalars"))
    part.scalars.push_back({scalar.at("name").get<std::string>(), to_number(scalar.at("value"))});
  return part;
}

OrderedJson to_json(const std::vector<std::pair<std::string, CheckpointIndex::Part>>& parts) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, part] : parts) json[name] = to_json(part);
  return json;
}

CheckpointIndex to_index(const OrderedJson& json) {
  CheckpointIndex index;
  index.id = json.at("id").get<std::string>();
  for (const auto& [name, text] : json.at("facts").items()) index.texts[name] = to_text(text);
  if (json.contains("integers"))
    for (const auto& [name, value] : json["integers"].items())
      index.integers[name] = json_integer<int64_t>(value, name);
  if (json.contains("numbers"))
    for (const auto& [name, value] : json["numbers"].items()) index.numbers[name] = to_number(value);
  for (const OrderedJson& file : json.at("files")) index.files.push_back(to_file(file));
  for (const auto& [name, part] : json.at("parts").items()) index.parts.emplace_back(name, to_part(part));
  return index;
}

/// The number of elements of each tensor, by `PART/NAME`.
std::unordered_map<std::string, int64_t> counts_of(const CheckpointIndex& index) {
  std::unordered_map<std::string, int64_t> counts;
  for (const auto& [part, listed] : index.parts)
    for (const CheckpointIndex::Entry& entry : listed.tensors) {
      for (const int64_t size : entry.sizes) WEFT_CHECK(size >= 0, "'", entry.name, "' of ", entry.sizes);
      WEFT_CHECK(is_countable(entry.sizes), "'", entry.name, "' of ", entry.sizes);
      WEFT_CHECK(!entry.is_ohwi || entry.sizes.rank() >= 3, "'", entry.name, "' of ", entry.sizes, " is OHWI");
      counts[part + '/' + entry.name] = entry.sizes.numel();
    }
  return counts;
}

bool lies_inside(const CheckpointIndex::Piece& piece, int64_t numel) {
  const auto& [offset, run, stride] = piece.of;
  if (piece.begin < 0 || piece.count < 0 || piece.count > numel || piece.begin > numel - piece.count) return false;
  if (run == 0 || piece.count == 0) return run >= 0;
  const int64_t last = piece.begin + piece.count - 1;
  return run > 0 && stride >= run && offset >= 0 && offset < numel && last / run <= numel / stride &&
         piece.of.place(last) < numel;
}

/// Errors: a piece that lies outside its tensor.
void check_pieces(const CheckpointIndex& index) {
  const auto counts = counts_of(index);
  for (const CheckpointIndex::File& file : index.files)
    for (const CheckpointIndex::Piece& piece : file.pieces) {
      const auto found = counts.find(piece.part + '/' + piece.name);
      WEFT_CHECK(found != counts.end() && lies_inside(piece, found->second), "elements ", piece.begin, " to ",
                 piece.count, " of '", piece.name, "'");
    }
}

}  // namespace

std::string CheckpointIndex::file_name(int rank) {
  char text[64];
  std::snprintf(text, sizeof text, "rank_%05d.safetensors", rank);
  return text;
}

std::string index_text(const CheckpointIndex& index, int indent) {
  OrderedJson files = OrderedJson::array(), numbers = OrderedJson::object(), texts = OrderedJson::object();
  bool is_new = false;
  for (const CheckpointIndex::File& file : index.files) {
    files.push_back(to_json(file));
    for (const CheckpointIndex::Piece& piece : file.pieces) is_new = is_new || piece.of.run != 0 || piece.writer != 0;
    is_new = is_new || file.rank >= 0;
  }
  for (const auto& [name, value] : index.numbers) numbers[name] = exact(value);
  for (const auto& [name, text] : index.texts) texts[name] = text_json(text);
  const OrderedJson json = {{"format", kIndexFormat},
                            {"version", is_new ? kVersion : 1},
                            {"id", index.id},
                            {"facts", texts},
                            {"integers", index.integers},
                            {"numbers", numbers},
                            {"files", files},
                            {"parts", to_json(index.parts)}};
  return json.dump(indent, ' ', false, OrderedJson::error_handler_t::replace) + '\n';
}

CheckpointIndex parse_index(const std::string& text, const std::string& where, const std::string& what) {
  check_ordered(text, where);
  const OrderedJson json = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool ours = json.is_object() && json.contains("format") && json["format"] == kIndexFormat;
  WEFT_CHECK(ours, where, ": ", what, " is not one of a sharded checkpoint");
  const OrderedJson version = json.value("version", OrderedJson());
  WEFT_CHECK(version == 1 || version == kVersion, where, ": expected version 1 or ", kVersion, ", got ",
             version.dump());
  try {
    CheckpointIndex index = to_index(json);
    check_pieces(index);
    return index;
  } catch (const std::exception& error) {
    fail(where, ": ", what, " is damaged: ", printable(error.what()));
  }
}

void write_index(const fs::path& folder, const CheckpointIndex& index) {
  const std::string text = index_text(index, 1);
  AtomicFile file(folder / CheckpointIndex::kFileName, "sharded checkpoint");
  AtomicFile::Writer out(file);
  out.write(text.data(), text.size());
  out.close();
  seal(file);
  file.commit();
}

CheckpointIndex read_index(const fs::path& folder) {
  constexpr const char* kName = CheckpointIndex::kFileName;
  const fs::path path = folder / kName;
  const std::string where = "sharded checkpoint " + folder.string();
  std::error_code ignored;
  WEFT_CHECK(fs::is_directory(folder, ignored), where, ": there is no such folder");
  if (!fs::exists(path, ignored)) {
    const auto [kind, cure] = kind_of_folder(folder);
    WEFT_CHECK(kind.empty(), "checkpoint: ", folder.string(), ": it is ", kind, ", expected a checkpoint. ",
               printable(cure));
    fail(where, ": it has no ", kName, ". Was it written by another program, or not finished?");
  }
  const SealState state = check_seal(path);
  WEFT_CHECK(state != SealState::missing, where, ": ", kName,
             " does not end with its seal. Was it truncated or changed?");
  WEFT_CHECK(state == SealState::whole, where, ": ", kName, " is damaged");
  std::string text = read_text(path, "sharded checkpoint", kLargestIndex);
  text.resize(text.size() - kSealBytes);
  return parse_index(text, where, kName);
}

std::string note_text(const RankNote& note) {
  return OrderedJson{{"file", to_json(note.file)}, {"parts", to_json(note.parts)}, {"error", note.error}}.dump(
      -1, ' ', false, OrderedJson::error_handler_t::replace);
}

RankNote read_note(const std::string& text) {
  check_ordered(text, "sharded checkpoint: a rank's note");
  try {
    const OrderedJson json = OrderedJson::parse(text);
    RankNote note{.file = to_file(json.at("file")), .error = json.at("error").get<std::string>()};
    for (const auto& [name, part] : json.at("parts").items()) note.parts.emplace_back(name, to_part(part));
    return note;
  } catch (const std::exception& error) {
    fail("sharded checkpoint: a rank's note is damaged: ", printable(error.what()));
  }
}

CheckpointIndex::File sums_of(const fs::path& path) {
  const FileReader file(path, "sharded checkpoint");
  CheckpointIndex::File sums{.bytes = file.size(), .crc32c = 0, .pieces = {}};
  std::vector<char> block(CheckpointIndex::kBlock);
  for (uint64_t done = 0; done < file.size(); done += block.size()) {
    const uint64_t bytes = std::min<uint64_t>(block.size(), file.size() - done);
    file.read(done, block.data(), bytes);
    sums.crc32c = crc32c(block.data(), bytes, sums.crc32c);
    sums.blocks.push_back(crc32c(block.data(), bytes));
  }
  return sums;
}

std::pair<uint32_t, uint64_t> checksum_of(const fs::path& path) {
  const CheckpointIndex::File sums = sums_of(path);
  return {sums.crc32c, sums.bytes};
}

}  // namespace weft
