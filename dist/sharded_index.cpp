// SPDX-License-Identifier: Apache-2.0
#include "dist/sharded_index.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/crc32c.h"
#include "core/seal.h"

namespace weft::dist {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kFormat = "weft sharded checkpoint";
constexpr int kVersion = 1;

/// Numbers as text: every double comes back bit by bit, infinities too.
std::string exact(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

DType parse_dtype(const std::string& text) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i)
    if (name(static_cast<DType>(i)) == text) return static_cast<DType>(i);
  fail("no such dtype: '", text, "'");
}

Json to_json(const ShardedIndex::File& file) {
  Json pieces = Json::array();
  for (const ShardedIndex::Piece& piece : file.pieces)
    pieces.push_back({{"part", piece.part}, {"name", piece.name}, {"begin", piece.begin}, {"count", piece.count}});
  return {{"bytes", file.bytes}, {"crc32c", file.crc32c}, {"pieces", pieces}};
}

ShardedIndex::File to_file(const Json& json) {
  ShardedIndex::File file{json.at("bytes").get<uint64_t>(), json.at("crc32c").get<uint32_t>(), {}};
  for (const Json& piece : json.at("pieces"))
    file.pieces.push_back({piece.at("part").get<std::string>(), piece.at("name").get<std::string>(),
                           piece.at("begin").get<int64_t>(), piece.at("count").get<int64_t>()});
  return file;
}

Json to_json(const ShardedIndex::Part& part) {
  Json tensors = Json::array(), scalars = Json::array();
  for (const ShardedIndex::Entry& entry : part.tensors)
    tensors.push_back({{"name", entry.name},
                       {"dtype", name(entry.dtype)},
                       {"sizes", std::vector<int64_t>(entry.sizes.begin(), entry.sizes.end())},
                       {"layout", entry.layout == nn::Layout::ohwi ? "ohwi" : "as_stored"}});
  for (const NamedScalar& scalar : part.scalars)
    scalars.push_back({{"name", scalar.name}, {"value", exact(scalar.value)}});
  return {{"tensors", tensors}, {"scalars", scalars}};
}

ShardedIndex::Part to_part(const Json& json) {
  ShardedIndex::Part part;
  for (const Json& entry : json.at("tensors")) {
    const auto sizes = entry.at("sizes").get<std::vector<int64_t>>();
    part.tensors.push_back({entry.at("name").get<std::string>(), parse_dtype(entry.at("dtype").get<std::string>()),
                            Shape(sizes), entry.at("layout") == "ohwi" ? nn::Layout::ohwi : nn::Layout::as_stored});
  }
  for (const Json& scalar : json.at("scalars"))
    part.scalars.push_back(
        {scalar.at("name").get<std::string>(), std::strtod(scalar.at("value").get<std::string>().c_str(), nullptr)});
  return part;
}

ShardedIndex to_index(const Json& json) {
  ShardedIndex index;
  index.id = json.at("id").get<std::string>();
  index.facts = json.at("facts").get<std::map<std::string, std::string>>();
  for (const Json& file : json.at("files")) index.files.push_back(to_file(file));
  for (const auto& [name, part] : json.at("parts").items()) index.parts.emplace(name, to_part(part));
  return index;
}

}  // namespace

std::string ShardedIndex::file_name(int rank) {
  char text[64];
  std::snprintf(text, sizeof text, "rank_%05d.safetensors", rank);
  return text;
}

void write_index(const fs::path& folder, const ShardedIndex& index) {
  Json files = Json::array(), parts = Json::object();
  for (const ShardedIndex::File& file : index.files) files.push_back(to_json(file));
  for (const auto& [name, part] : index.parts) parts[name] = to_json(part);
  const Json json = {{"format", kFormat},    {"version", kVersion}, {"id", index.id},
                     {"facts", index.facts}, {"files", files},      {"parts", parts}};
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
  AtomicFile file(folder / ShardedIndex::kName, "sharded checkpoint");
  AtomicFile::Writer out(file);
  out.write(text.data(), text.size());
  out.close();
  seal(file);
  file.commit();
}

ShardedIndex read_index(const fs::path& folder) {
  const fs::path path = folder / ShardedIndex::kName;
  const std::string where = "sharded checkpoint " + folder.string();
  std::error_code ignored;
  WEFT_CHECK(fs::is_directory(folder, ignored), where, ": there is no such folder");
  WEFT_CHECK(fs::exists(path, ignored), where, ": it has no ", ShardedIndex::kName,
             ". Was it written by another program, or never finished?");
  const SealState state = check_seal(path);
  WEFT_CHECK(state != SealState::missing, where, ": ", ShardedIndex::kName,
             " does not end with its seal. Was it cut short or changed?");
  WEFT_CHECK(state == SealState::whole, where, ": ", ShardedIndex::kName, " is damaged");
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  std::string text = bytes.str();
  text.resize(text.size() - kSealBytes);
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool ours = json.is_object() && json.contains("format") && json["format"] == kFormat;
  WEFT_CHECK(ours, where, ": ", ShardedIndex::kName, " is not one of a sharded checkpoint");
  WEFT_CHECK(json.contains("version") && json["version"] == kVersion, where, ": expected version ", kVersion, ", got ",
             json.value("version", Json()).dump());
  try {
    return to_index(json);
  } catch (const std::exception& error) {
    fail(where, ": ", ShardedIndex::kName, " is damaged: ", error.what());
  }
}

std::string note_text(const RankNote& note) {
  return Json{{"file", to_json(note.file)}, {"error", note.error}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

RankNote read_note(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    return {to_file(json.at("file")), json.at("error").get<std::string>()};
  } catch (const Json::exception& error) {
    fail("sharded checkpoint: a rank's note is damaged: ", error.what());
  }
}

std::pair<uint32_t, uint64_t> checksum_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  WEFT_CHECK(in, "sharded checkpoint: cannot read ", path.string());
  std::vector<char> chunk(size_t{1} << 20);
  uint32_t crc = 0;
  uint64_t bytes = 0;
  while (in.read(chunk.data(), static_cast<std::streamsize>(chunk.size())), in.gcount() > 0) {
    crc = crc32c(chunk.data(), static_cast<size_t>(in.gcount()), crc);
    bytes += static_cast<uint64_t>(in.gcount());
  }
  WEFT_CHECK(in.eof(), "sharded checkpoint: cannot read ", path.string());
  return {crc, bytes};
}

}  // namespace weft::dist
