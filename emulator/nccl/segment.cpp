// SPDX-License-Identifier: Apache-2.0
#include "emulator/nccl/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include "emulator/machine/fault.h"

namespace emulator::nccl {
namespace {

constexpr uint64_t kMagic = 0x6c63636e74666577;  // "weftnccl"
constexpr size_t kPage = 4096;
static_assert(sizeof(SegmentHeader) <= kPage);

/// The content of an ncclUniqueId of ours.
struct Id {
  uint64_t magic;
  std::array<uint64_t, 2> nonce;
  uint64_t started;
  int32_t pid, file;
};
static_assert(sizeof(Id) <= sizeof(ncclUniqueId));

Id id_of(const ncclUniqueId& id) {
  Id result;
  std::memcpy(&result, id.internal, sizeof result);
  return result;
}

void* map(int file, size_t bytes) {
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return p == MAP_FAILED ? nullptr : p;
}

/// Whether this open file is the segment that the id names: its number may mean another file by now.
bool is_segment(int file, const Id& id) {
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < static_cast<off_t>(kPage)) return false;
  auto* const header = static_cast<SegmentHeader*>(map(file, kPage));
  if (!header) return false;
  const bool right = header->magic == kMagic && header->nonce == id.nonce;
  munmap(header, kPage);
  return right;
}

size_t up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

bool SharedError::post(ncclResult_t error, int finder, const std::string& message) {
  uint32_t none = 0;
  if (!state.compare_exchange_strong(none, 1)) return false;
  code = error;
  rank = finder;
  text[message.copy(text, sizeof text - 1)] = 0;
  state.store(2);
  return true;
}

std::optional<ncclUniqueId> Segment::make() {
  const int file = memfd_create("weft-nccl", MFD_CLOEXEC);
  if (file < 0) return std::nullopt;
  auto* const header = ftruncate(file, kPage) == 0 ? static_cast<SegmentHeader*>(map(file, kPage)) : nullptr;
  if (!header) {
    close(file);
    return std::nullopt;
  }
  new (header) SegmentHeader{};
  header->magic = kMagic;
  if (getrandom(header->nonce.data(), sizeof header->nonce, 0) != sizeof header->nonce) header->nonce = {};
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&header->lanes, &attributes);
  pthread_mutexattr_destroy(&attributes);
  const Id id{kMagic, header->nonce, start_of_process(getpid()), getpid(), file};
  munmap(header, kPage);
  ncclUniqueId result{};
  std::memcpy(result.internal, &id, sizeof id);
  return result;
}

std::optional<Segment::Failure> Segment::open(const ncclUniqueId& unique_id, int size, int rank, Segment& segment) {
  const Id id = id_of(unique_id);
  if (id.magic != kMagic) return Failure{ncclInvalidArgument, "the ncclUniqueId is none of ncclGetUniqueId"};
  if (start_of_process(id.pid) != id.started)
    return Failure{ncclRemoteError, cat("process ", id.pid, ", which made the ncclUniqueId, has ended")};
  const int file = ::open(cat("/proc/", id.pid, "/fd/", id.file).c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0 && errno != ENOENT)
    return Failure{ncclSystemError, cat("cannot open the memory of process ", id.pid, ": ", std::strerror(errno))};
  if (file < 0 || !is_segment(file, id)) {
    if (file >= 0) close(file);
    return Failure{ncclInvalidUsage,
                   "the ncclUniqueId has served another communicator already: call ncclGetUniqueId "
                   "for each"};
  }
  segment.lay_out(size);
  auto* const header = static_cast<SegmentHeader*>(map(file, kPage));
  std::optional<Failure> failure;
  if (!header) {
    failure = Failure{ncclSystemError, cat("mmap: ", std::strerror(errno))};
  } else {
    const uint64_t mine = static_cast<uint64_t>(size) | static_cast<uint64_t>(rank) << 32;
    uint64_t theirs = 0;
    if (!header->size.compare_exchange_strong(theirs, mine) && (theirs & 0xffffffff) != static_cast<uint64_t>(size)) {
      failure = Failure{ncclInvalidUsage, cat("ncclCommInitRank: rank ", theirs >> 32, " says ", theirs & 0xffffffff,
                                              " ranks, rank ", rank, " says ", size)};
      header->error.post(failure->code, rank, failure->text);
    } else if (ftruncate(file, static_cast<off_t>(segment.bytes_)) != 0 ||
               !(segment.base_ = static_cast<std::byte*>(map(file, segment.bytes_)))) {
      failure = Failure{ncclSystemError, cat(segment.bytes_ >> 20, " MiB of shared memory: ", std::strerror(errno))};
    }
    munmap(header, kPage);
  }
  close(file);
  return failure;
}

bool Segment::is_id(const ncclUniqueId& id) { return id_of(id).magic == kMagic; }

void Segment::forget(const ncclUniqueId& unique_id) {
  // The file is open where the id was made, and in processes forked from there.
  static std::mutex mutex;  // the number could be another file's between the question and the close
  const std::lock_guard lock(mutex);
  const Id id = id_of(unique_id);
  if (is_segment(id.file, id)) close(id.file);
}

Segment::~Segment() {
  if (base_) munmap(base_, bytes_);
}

void Segment::lay_out(int size) {
  size_ = size;
  const auto n = static_cast<size_t>(size);
  size_t end = kPage;
  const auto place = [&end](size_t bytes, size_t unit) {
    const size_t begin = up(end, unit);
    end = begin + bytes;
    return begin;
  };
  slots_ = place(n * sizeof(RankSlot), 64);
  calls_ = place(n * kCalls * sizeof(CallRecord), 64);
  met_ = place(n * n * sizeof(std::atomic<uint64_t>), 64);
  lanes_ = place(kLanes * sizeof(Lane), 64);
  sides_ = place(kLanes * n * sizeof(LaneSide), 64);
  channels_ = place(2 * n * n * sizeof(Channel), 64);
  // Untouched pages cost nothing; many ranks still share 64 MiB of messages.
  message_chunk_ = std::clamp(((size_t{64} << 20) / (4 * n * n)) / kPage * kPage, kPage, kChunk);
  messages_ = place(2 * n * n * 2 * message_chunk_, kPage);
  chunks_ = place(kLanes * n * 2 * kChunk, kPage);
  bytes_ = up(end, kPage);
}

uint64_t start_of_process(int pid) {
  std::FILE* const file = std::fopen(cat("/proc/", pid, "/stat").c_str(), "re");
  if (!file) return 0;
  char text[1024];
  const size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[size] = 0;
  const char* const name_end = std::strrchr(text, ')');  // the name may hold anything
  char state = 0;
  unsigned long long start = 0;
  // proc(5): state is field 3, starttime field 22.
  if (!name_end ||
      std::sscanf(name_end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                  &state, &start) != 2)
    return 0;
  return state == 'Z' || state == 'X' ? 0 : start;
}

}  // namespace emulator::nccl
