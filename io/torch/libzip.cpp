// SPDX-License-Identifier: Apache-2.0
#include <zip.h>

#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "io/file_reader.h"
#include "io/torch/zip_archive.h"

namespace weft {
namespace {

constexpr uint64_t kAlignment = 64;  // alignment of an entry's data, as in PyTorch's files
constexpr uint64_t kLocalHeader = 30, kExtraHeader = 4, kZip64Extra = 20, kLargest32 = 0xffffffff;
constexpr uint64_t kMostDeflated = 1032;  // bytes that a byte of deflate can become (zlib's technical details)
constexpr uint16_t kPadding = 0x4246;     // the extra field that PyTorch pads with ("FB")

std::string text_of(zip_error_t* error) {
  std::string text = zip_error_strerror(error);
  zip_error_fini(error);
  return text;
}

}  // namespace

struct ZipArchive::Parts {
  FileReader file;  // its size, and errors that name it
  zip_t* zip = nullptr;
  std::vector<Entry> entries;
  std::unordered_map<std::string_view, size_t> index;
  bool has_checksums = false;  // torch.serialization.set_crc32_options(False) leaves them all 0

  Parts(const std::filesystem::path& path, const std::string& kind) : file(path, kind) {}
  ~Parts() {
    if (zip != nullptr) zip_discard(zip);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void read(size_t number, void* to, uint64_t begin, uint64_t bytes) const;
};

bool have_zip() { return true; }

ZipArchive::ZipArchive(const std::filesystem::path& path, const std::string& kind)
    : parts_(std::make_unique<Parts>(path, kind)) {
  const FileReader& file = parts_->file;
  int code = 0;
  parts_->zip = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (parts_->zip == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    file.bad("expected a whole zip archive, got '", text_of(&error), "'. Is the file cut short?");
  }
  const auto count = static_cast<uint64_t>(zip_get_num_entries(parts_->zip, 0));
  uint64_t left = file.size();
  for (uint64_t i = 0; i < count; ++i) {
    zip_stat_t facts;
    if (zip_stat_index(parts_->zip, i, 0, &facts) != 0)
      file.bad("zip entry ", i, ": expected its name and size, got '", zip_error_strerror(zip_get_error(parts_->zip)),
               "'");
    parts_->has_checksums = parts_->has_checksums || ((facts.valid & ZIP_STAT_CRC) != 0 && facts.crc != 0);
    constexpr uint64_t all =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((facts.valid & all) != all) file.bad("zip entry ", i, ": expected its name, size and index, got some");
    if (facts.comp_size > left)
      file.bad("zip entry '", facts.name, "': expected at most ", left, " bytes that no entry before it has, got ",
               facts.comp_size, ". Is the file damaged?");
    left -= facts.comp_size;
    const bool stored = facts.comp_method == ZIP_CM_STORE && facts.comp_size == facts.size;
    const bool plain = facts.encryption_method == ZIP_EM_NONE, deflated = facts.comp_method == ZIP_CM_DEFLATE;
    if (deflated && facts.size / kMostDeflated > facts.comp_size)
      file.bad("zip entry '", facts.name, "': expected at most ", kMostDeflated, " times its ", facts.comp_size,
               " compressed bytes, got ", facts.size, ". Is the file damaged?");
    parts_->entries.push_back({facts.name, facts.size, stored && plain, deflated && plain});
  }
  for (size_t i = 0; i < count; ++i)
    if (!parts_->index.emplace(parts_->entries[i].name, i).second)
      file.bad("zip entry '", parts_->entries[i].name, "' occurs twice");
}

ZipArchive::~ZipArchive() = default;
ZipArchive::ZipArchive(ZipArchive&&) noexcept = default;
const std::vector<ZipArchive::Entry>& ZipArchive::entries() const { return parts_->entries; }

int64_t ZipArchive::find(std::string_view name) const {
  const auto found = parts_->index.find(name);
  return found == parts_->index.end() ? -1 : static_cast<int64_t>(found->second);
}

void ZipArchive::read(size_t index, void* to, uint64_t begin, uint64_t bytes) const {
  const Entry& entry = parts_->entries.at(index);
  if (!entry.is_stored)
    parts_->file.bad("zip entry '", entry.name,
                     "': expected it stored, as PyTorch and np.savez do, got it compressed or encrypted");
  parts_->read(index, to, begin, bytes);
}

std::vector<uint8_t> ZipArchive::unpack(size_t index) const {
  const Entry& entry = parts_->entries.at(index);
  if (!entry.is_stored && !entry.is_deflated)
    parts_->file.bad("zip entry '", entry.name,
                     "': expected it stored or deflated, got it encrypted or compressed by another method");
  std::vector<uint8_t> bytes(entry.size);
  parts_->read(index, bytes.data(), 0, bytes.size());
  return bytes;
}

void ZipArchive::Parts::read(size_t number, void* to, uint64_t begin, uint64_t bytes) const {
  const Entry& entry = entries[number];
  const auto bad = [&](const char* got) {
    file.bad("zip entry '", entry.name, "': expected ", entry.size, " bytes, got '", got, "'");
  };
  zip_file_t* const opened = zip_fopen_index(zip, number, 0);
  if (opened == nullptr) bad(zip_error_strerror(zip_get_error(zip)));
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> stream(opened, zip_fclose);
  if (begin > 0 && zip_fseek(opened, static_cast<zip_int64_t>(begin), SEEK_SET) != 0)
    bad(zip_error_strerror(zip_file_get_error(opened)));
  auto* out = static_cast<char*>(to);
  for (uint64_t done = 0; done < bytes;) {
    const zip_int64_t got = zip_fread(opened, out + done, bytes - done);
    if (got < 0) bad(zip_error_strerror(zip_file_get_error(opened)));
    if (got == 0) bad("end of data");
    done += static_cast<uint64_t>(got);
  }
  if (!has_checksums || bytes < entry.size) return;
  char beyond = 0;  // libzip checks the checksum at the end
  const zip_int64_t end = zip_fread(opened, &beyond, 1);
  if (end < 0) bad(zip_error_strerror(zip_file_get_error(opened)));
  if (end > 0) bad("more data");
}

/// An entry as libzip reads: open, read piece by piece, close.
struct ZipWriter::Parts {
  struct Source {
    uint64_t size, done = 0;
    Load load;
    std::shared_ptr<const void> bytes;
    zip_error_t error;
  };

  const AtomicFile& file;
  zip_t* zip = nullptr;
  uint64_t position = 0;  // where the next local header begins

  explicit Parts(const AtomicFile& atomic) : file(atomic) {}

  [[noreturn]] void fail_write() const {
    zip_error_t* const error = zip_get_error(zip);
    const bool of_system = zip_error_system_type(error) == ZIP_ET_SYS;
    file.fail_write(of_system && zip_error_code_system(error) != 0 ? zip_error_code_system(error) : EIO);
  }

  static zip_int64_t answer(void* state, void* data, zip_uint64_t length, zip_source_cmd_t command) {
    auto* source = static_cast<Source*>(state);
    switch (command) {
      case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
                                              ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
      case ZIP_SOURCE_OPEN:
        source->done = 0;
        source->bytes = source->load();
        return 0;
      case ZIP_SOURCE_READ: {
        const uint64_t count = std::min<uint64_t>(length, source->size - source->done);
        if (count > 0) std::memcpy(data, static_cast<const char*>(source->bytes.get()) + source->done, count);
        source->done += count;
        return static_cast<zip_int64_t>(count);
      }
      case ZIP_SOURCE_CLOSE:
        source->bytes.reset();
        return 0;
      case ZIP_SOURCE_STAT: {
        auto* facts = static_cast<zip_stat_t*>(data);
        zip_stat_init(facts);
        facts->valid = ZIP_STAT_SIZE;
        facts->size = source->size;
        return sizeof *facts;
      }
      case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&source->error, data, length);
      case ZIP_SOURCE_FREE:
        delete source;
        return 0;
      default:
        return -1;
    }
  }
};

ZipWriter::ZipWriter(const AtomicFile& file) : parts_(std::make_unique<Parts>(file)) {
  int code = 0;
  parts_->zip = zip_open(file.temporary().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (parts_->zip == nullptr) file.fail_write(errno);
}

ZipWriter::~ZipWriter() {
  if (parts_->zip != nullptr) zip_discard(parts_->zip);
}

void ZipWriter::add(const std::string& name, uint64_t size, Load load) {
  zip_t* const zip = parts_->zip;
  auto* source = new Parts::Source{size, 0, std::move(load), nullptr, {}};
  zip_error_init(&source->error);
  zip_source_t* const stream = zip_source_function(zip, Parts::answer, source);
  if (stream == nullptr) {
    delete source;
    parts_->fail_write();
  }
  const zip_int64_t added = zip_file_add(zip, name.c_str(), stream, ZIP_FL_ENC_UTF_8);
  if (added < 0) {
    zip_source_free(stream);
    parts_->fail_write();
  }
  const auto index = static_cast<zip_uint64_t>(added);
  const uint64_t before = parts_->position + kLocalHeader + name.size() + (size > kLargest32 ? kZip64Extra : 0);
  const uint64_t padding = (kAlignment - (before + kExtraHeader) % kAlignment) % kAlignment;
  const std::string zeros(padding, '\0');
  constexpr uint16_t kNewYear1980 = 0x0021;  // the first day of a zip: equal weights give equal files
  if (zip_set_file_compression(zip, index, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(zip, index, 0, kNewYear1980, 0) != 0 ||
      zip_file_extra_field_set(zip, index, kPadding, ZIP_EXTRA_FIELD_NEW,
                               reinterpret_cast<const zip_uint8_t*>(zeros.data()), static_cast<zip_uint16_t>(padding),
                               ZIP_FL_LOCAL) != 0)
    parts_->fail_write();
  parts_->position = before + kExtraHeader + padding + size;
}

void ZipWriter::close() {
  if (zip_close(parts_->zip) != 0) parts_->fail_write();
  parts_->zip = nullptr;
}

}  // namespace weft
