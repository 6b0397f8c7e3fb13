// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/fatbin.h"

#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstring>

#include "emulator/cuda/cubin.h"
#include "emulator/cuda/error.h"

// NVIDIA does not document the layout of the container. nvcc 13.0 writes: magic, version, header size, size;
// then entries: kind (1 PTX, 2 machine code), header size at +4, payload size at +8, compressed size at +16.
// Further fields are the architecture at +28, flags at +40, size before compression at +56.

namespace emulator::cuda {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1, kContainerMagic = 0xba55ed50;
constexpr uint64_t kCompressedLz = 0x2000, kCompressedZstd = 0x8000;
constexpr uint16_t kPtx = 1, kElf = 2;
constexpr size_t kContainerHeader = 16, kEntryHeader = 64;
constexpr uint32_t kLargestArch = 10000;
constexpr uint64_t kMostRaw = uint64_t{1} << 28;  // bytes that one entry may unpack to

template <class T>
T at(const char* base, size_t offset) {
  T value;
  std::memcpy(&value, base + offset, sizeof value);
  return value;
}

/// The PTX's `.target sm_90a`; the container's number has no room for the letter.
void read_target(std::string_view text, Fatbin::Entry& entry) {
  const size_t found = text.find(".target");
  if (found == std::string_view::npos) return;
  const size_t sm = text.find("sm_", found);
  if (sm == std::string_view::npos || sm > found + 64) return;
  size_t i = sm + 3;
  int arch = 0;
  while (i < text.size() && text[i] >= '0' && text[i] <= '9' && arch <= int(kLargestArch)) arch = arch * 10 + (text[i++] - '0');
  entry.arch = arch;
  entry.arch_specific = i < text.size() && (text[i] == 'a' || text[i] == 'f');
}

std::string unpack(const Fatbin::Entry& entry, const std::string& name) {
  if (!entry.text.empty()) return entry.text;
  std::string text;
  if (!entry.compressed) {
    text.assign(entry.payload, entry.bytes);
  } else if (entry.bytes >= 4 && at<uint32_t>(entry.payload, 0) == ZSTD_MAGICNUMBER) {
    if (entry.raw_bytes > kMostRaw) fail(cudaErrorInvalidKernelImage, cat("damaged code in ", name));
    text.resize(entry.raw_bytes);
    const size_t size = ZSTD_decompress(text.data(), text.size(), entry.payload, entry.bytes);
    if (ZSTD_isError(size)) {
      fail(cudaErrorInvalidKernelImage, cat("damaged PTX in ", name, ": ", ZSTD_getErrorName(size)));
    }
    text.resize(size);
  } else {
    fail(cudaErrorNotSupported, cat("the PTX in ", name,
                                    " is compressed in the way of older nvcc: build with --compress-mode=none or with "
                                    "nvcc 12.8 or newer"));
  }
  // nvcc pads text with zeros.
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

void read_container(const char* data, size_t bytes, Fatbin& fatbin) {
  if (bytes < kContainerHeader || at<uint32_t>(data, 0) != kContainerMagic) {
    fail(cudaErrorInvalidKernelImage, "a module's image is neither a fat binary nor PTX");
  }
  const size_t header = at<uint16_t>(data, 6);
  uint64_t left = at<uint64_t>(data, 8);
  if (header < kContainerHeader || header > bytes || left > bytes - header) {
    fail(cudaErrorInvalidKernelImage, "a damaged fat binary");
  }
  for (const char* entry = data + header; left >= kEntryHeader;) {
    const uint16_t kind = at<uint16_t>(entry, 0);
    const uint32_t skip = at<uint32_t>(entry, 4);
    const uint64_t payload = at<uint64_t>(entry, 8);
    const uint64_t flags = at<uint64_t>(entry, 40);
    const uint32_t packed = at<uint32_t>(entry, 16);
    const bool compressed = (flags & (kCompressedLz | kCompressedZstd)) != 0;
    const uint32_t arch = at<uint32_t>(entry, 28);
    if (skip < kEntryHeader || skip > left || payload > left - skip || (compressed && packed > payload) ||
        arch > kLargestArch) {
      fail(cudaErrorInvalidKernelImage, "a damaged fat binary");
    }
    Fatbin::Entry one;
    one.is_ptx = kind == kPtx;
    one.arch = int(arch);
    one.payload = entry + skip;
    one.compressed = compressed;
    one.bytes = compressed && packed != 0 ? packed : payload;
    one.raw_bytes = at<uint64_t>(entry, 56);
    if (kind == kPtx || kind == kElf) fatbin.entries.push_back(std::move(one));
    entry += skip + payload;
    left -= skip + payload;
  }
}

}  // namespace

static const Fatbin::Entry* machine_code(const std::vector<Fatbin::Entry>& entries, int capability) {
  const Fatbin::Entry* best = nullptr;
  for (const Fatbin::Entry& entry : entries)
    if (!entry.is_ptx && entry.arch / 10 == capability / 10 && entry.arch <= capability && (!best || entry.arch > best->arch)) best = &entry;
  return best;
}

/// `later`: PTX for later GPUs counts, too, where there is machine code for this one; the oldest is taken.
static std::string chosen_ptx(const Fatbin& of, int capability, bool later, int& target) {
  std::string best;
  int best_rank = INT_MIN, needed = 0;
  const int most = later && machine_code(of.entries, capability) ? INT_MAX : capability;
  for (const Fatbin::Entry& entry : of.entries) {
    if (!entry.is_ptx || entry.arch > most) continue;
    Fatbin::Entry one = entry;
    std::string text = unpack(entry, of.name);
    read_target(text, one);
    if (one.arch > most || (one.arch_specific && one.arch != capability)) continue;
    const int rank = one.arch > capability ? -one.arch : one.arch * 2 + one.arch_specific;
    if (rank > best_rank) {
      best_rank = rank;
      best = std::move(text);
      needed = one.arch;
    }
  }
  target = std::max(target, needed);
  int files = 0;
  for (const Fatbin& part : of.parts)
    if (const std::string text = chosen_ptx(part, capability, later, target); !text.empty())
      best += renumbered(text, files, files) + '\n';
  return best;
}

std::string Fatbin::ptx_for(int capability, int* target) const {
  int needed = 0;
  std::string text = chosen_ptx(*this, capability, false, needed);
  if (text.empty()) text = chosen_ptx(*this, capability, true, needed);  // never beside older PTX, as in libcudadevrt
  if (target) *target = needed;
  return text;
}

static bool can_unpack(const Fatbin::Entry& entry) {
  return !entry.compressed || (entry.bytes >= 4 && at<uint32_t>(entry.payload, 0) == ZSTD_MAGICNUMBER);
}

std::string Fatbin::machine_code_for(int capability) const {
  const Entry* const best = machine_code(entries, capability);
  return best && can_unpack(*best) ? unpack(*best, name) : std::string();
}

bool Fatbin::may_have_kernels() const {
  return !parts.empty() || std::ranges::any_of(entries, [&](const Entry& entry) {
    return entry.is_ptx || !can_unpack(entry) || !registers_of_cubin(unpack(entry, name)).empty();
  });
}

std::string Fatbin::describe() const {
  std::string text;
  for (const Entry& entry : entries) {
    if (!text.empty()) text += ", ";
    text += cat(entry.is_ptx ? "PTX for compute_" : "machine code for sm_", entry.arch);
  }
  for (const Fatbin& part : parts) text += cat(text.empty() ? "" : ", ", "an object with ", part.describe());
  return text.empty() ? "no code" : text;
}

static constexpr int kMostFiles = 1 << 20;

std::string renumbered(const std::string& ptx, int before, int& files) {
  std::string out;
  for (size_t at = 0, end; at < ptx.size(); at = end) {
    end = std::min(ptx.find('\n', at), ptx.size() - 1) + 1;
    const std::string_view line(ptx.data() + at, end - at);
    const size_t word = line.find_first_not_of(" \t");
    size_t digits = std::string_view::npos;
    for (const std::string_view name : {".file", ".loc"})
      if (word != std::string_view::npos && line.substr(word).starts_with(name))
        digits = line.find_first_not_of(" \t", word + name.size());
    int number = 0;
    if (digits == std::string_view::npos ||
        std::from_chars(line.data() + digits, line.data() + line.size(), number).ec != std::errc() ||
        number > kMostFiles) {
      out += line;
      continue;
    }
    const size_t rest = line.find_first_not_of("0123456789", digits);
    out += cat(line.substr(0, digits), number + before);
    std::string_view tail = line.substr(std::min(rest, line.size()));
    constexpr std::string_view kCall = ", inlined_at ";  // the call's file, line and column
    int caller = 0;
    if (const size_t call = tail.find(kCall); line[word + 1] == 'l' && call != std::string_view::npos) {
      const char* const begin = tail.data() + call + kCall.size();
      const auto [after, problem] = std::from_chars(begin, tail.data() + tail.size(), caller);
      if (problem == std::errc() && caller <= kMostFiles) {
        out += cat(tail.substr(0, call + kCall.size()), caller + before);
        tail.remove_prefix(static_cast<size_t>(after - tail.data()));
      }
    }
    out += tail;
    files = std::max(files, number + before);
  }
  return out;
}

Fatbin read_image(const void* image, size_t bytes) {
  require(image != nullptr);
  Fatbin fatbin;
  const char* data = static_cast<const char*>(image);
  fatbin.name = "a module";
  if (bytes < 4) fail(cudaErrorInvalidKernelImage, "a module's image is neither a fat binary nor PTX");
  // nvcc's wrapper: magic, version, the container, a name or nothing.
  if (bytes == SIZE_MAX && at<uint32_t>(data, 0) == kWrapperMagic) {
    // Version 2: relocatable code. The list that ends with null has what nvcc left for the driver to link.
    if (at<uint32_t>(data, 4) == 2)
      for (auto* part = at<const void* const*>(data, 16); part && *part; ++part)
        fatbin.parts.push_back(read_image(*part));
    data = at<const char*>(data, 8);
  }
  const bool is_text = *data == '/' || *data == '.' || *data == ' ' || *data == '\n' || *data == '\t' || *data == '\r';
  if (is_text) {
    Fatbin::Entry entry;
    entry.is_ptx = true;
    entry.text.assign(data, bytes == SIZE_MAX ? std::strlen(data) : strnlen(data, bytes));
    read_target(entry.text, entry);
    fatbin.entries.push_back(std::move(entry));
  } else if (std::memcmp(data, "\177ELF", 4) == 0) {
    fail(cudaErrorNoKernelImageForDevice,
         "a module is machine code (a cubin) without PTX: build it with code=compute_…");
  } else {
    read_container(data, bytes, fatbin);
  }
  return fatbin;
}

}  // namespace emulator::cuda
