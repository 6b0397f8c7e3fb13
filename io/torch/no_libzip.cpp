// SPDX-License-Identifier: Apache-2.0
// Replaces libzip.cpp in builds without libzip.
#include "io/torch/zip_archive.h"
#include "kernels/error.h"

namespace weft {
namespace {

[[noreturn]] void missing(const std::string& path, const std::string& kind = "pytorch") {
  fail(kind, ": expected a build with libzip for ", path,
       ", got one without. Install libzip-dev, configure and build again, or use safetensors");
}

}  // namespace

struct ZipArchive::Parts {};
struct ZipWriter::Parts {};

bool have_zip() { return false; }
ZipArchive::ZipArchive(const std::filesystem::path& path, const std::string& kind) { missing(path.string(), kind); }
ZipArchive::~ZipArchive() = default;
ZipArchive::ZipArchive(ZipArchive&&) noexcept = default;
const std::vector<ZipArchive::Entry>& ZipArchive::entries() const { missing("it"); }
int64_t ZipArchive::find(std::string_view) const { return -1; }
void ZipArchive::read(size_t, void*, uint64_t, uint64_t) const {}
std::vector<uint8_t> ZipArchive::unpack(size_t) const { return {}; }

ZipWriter::ZipWriter(const AtomicFile& file) { missing(file.temporary().parent_path().string()); }
ZipWriter::~ZipWriter() = default;
void ZipWriter::add(const std::string&, uint64_t, Load) {}
void ZipWriter::close() {}

}  // namespace weft
