// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nccl.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "emulator/nccl/bell.h"
#include "emulator/nccl/operation.h"

namespace emulator::nccl {

// The memory that the ranks of one communicator share, whether threads or processes. It is an anonymous file of the
// process that made the ncclUniqueId; others open it through /proc/PID/fd. So it has no name that a crash could leave
// behind. All zero is the state before anything happened; atomics are lock-free, so they work between processes.

enum class Presence : uint32_t { absent, joining, here, left, aborted };

/// The first error of a communicator ends it for all ranks.
struct SharedError {
  bool is_here() const { return state.load() == 2; }
  /// False: there is one already.
  bool post(ncclResult_t error, int finder, const std::string& message);

  std::atomic<uint32_t> state;  ///< 0 none, 1 being written, 2 here
  int32_t code;
  int32_t rank;  ///< the rank that found it
  char text[1024];
};

struct SegmentHeader {
  uint64_t magic;
  std::array<uint64_t, 2> nonce;
  std::atomic<uint64_t> size;  ///< ranks; above bit 32 the rank that set it
  std::atomic<uint32_t> complete;
  pthread_mutex_t lanes;  ///< robust: guards the claims of lanes
  SharedError error;
};

/// A rank's wait in an operation. A rank in a wait does nothing else. So a circle of waiting ranks is a deadlock if
/// each has looked again (beats) and none has moved (moves).
struct SharedWait {
  std::atomic<int32_t> peer;  ///< rank + 1; 0: it does not wait
  std::atomic<uint64_t> moves, beats;
  std::array<std::atomic<uint64_t>, 12> what;  ///< text; atomics, since it may change under the reader
};

/// Meetings of the host's calls: split, shrink.
struct SharedMeeting {
  std::atomic<uint64_t> here;
  std::atomic<int32_t> color, key;
  std::atomic<uint64_t> id_of;
  ncclUniqueId id;
};

struct alignas(64) RankSlot {
  std::atomic<Presence> presence;
  int32_t pid;
  uint64_t started;  ///< the process's start time: a pid may be given again
  char gpu[128];     ///< names the physical GPU
  Bell bell;
  std::atomic<uint64_t> calls;  ///< how many collectives it has called
  SharedWait wait;
  SharedMeeting meeting;
};

/// One call of a rank, for the others to compare with theirs.
struct CallRecord {
  std::atomic<uint64_t> number, word, count;
};

/// A rank's side of a lane: where collectives exchange chunks.
struct alignas(64) LaneSide {
  struct Entry {
    std::atomic<uint64_t> number, word, count, factor;
    std::atomic<double> arrived;  ///< its predicted clock (timeline.h), seconds
  };
  std::atomic<uint64_t> entered;        ///< collectives that it has begun here
  std::array<Entry, 2> entries;         ///< indexed by parity: no rank is more than one ahead
  std::atomic<uint64_t> written, read;  ///< rounds of chunks
};

struct Lane {
  uint64_t key;  ///< key of the captured collective that has the slot, 0: free
  uint32_t departed;
};

/// Messages from one rank to another. Both sides announce theirs; the sender is done when the receiver has read all.
struct alignas(64) Channel {
  struct Side {
    std::atomic<uint64_t> announced;
    std::array<std::atomic<uint64_t>, 2> word, count;  ///< indexed by the parity of `announced`
    std::array<std::atomic<double>, 2> arrived, takes;  ///< seconds: its predicted clock, and of its group's direction
  };
  Side sender, receiver;
  std::atomic<uint64_t> written, read;  ///< chunks
};

class Segment {
 public:
  static constexpr int kLanes = 8;     ///< 0 for the calls in order, the others for captured ones as they come
  static constexpr int kCalls = 1024;  ///< that are remembered of each rank
  static constexpr int kMaxRanks = 512;
  static constexpr size_t kChunk = size_t{256} << 10;

  /// A new one, held by this process until all ranks have joined. nullopt: the system has none.
  static std::optional<ncclUniqueId> make();
  /// Maps it for `size` ranks. An error is a text, with its code.
  struct Failure {
    ncclResult_t code;
    std::string text;
  };
  static std::optional<Failure> open(const ncclUniqueId& id, int size, int rank, Segment& segment);
  static bool is_id(const ncclUniqueId& id);
  /// All have joined: the anonymous file goes with the last mapping.
  static void forget(const ncclUniqueId& id);

  Segment() = default;
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  explicit operator bool() const { return base_ != nullptr; }
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  RankSlot& slot(int rank) const { return at<RankSlot>(slots_, rank); }
  CallRecord& call(int rank, uint64_t number) const {
    return at<CallRecord>(calls_, static_cast<size_t>(rank) * kCalls + number % kCalls);
  }
  /// The mark of the last exchange of these two that `rank` has read completely. Each pair has its own mark, which
  /// exchanges of others do not overwrite.
  std::atomic<uint64_t>& met(int rank, int other) const {
    return at<std::atomic<uint64_t>>(met_, pair(false, rank, other));
  }
  Lane& lane(int lane) const { return at<Lane>(lanes_, lane); }
  LaneSide& side(int lane, int rank) const { return at<LaneSide>(sides_, lane * size_ + rank); }
  std::byte* chunk(int lane, int rank, uint64_t round) const {
    return base_ + chunks_ + (static_cast<size_t>(lane * size_ + rank) * 2 + round % 2) * kChunk;
  }
  /// Channels of captured transfers are others than those of transfers in order.
  Channel& channel(bool captured, int from, int to) const { return at<Channel>(channels_, pair(captured, from, to)); }
  std::byte* message(bool captured, int from, int to, uint64_t chunk) const {
    return base_ + messages_ + (pair(captured, from, to) * 2 + chunk % 2) * message_chunk_;
  }
  size_t message_chunk() const { return message_chunk_; }

 private:
  template <class T, class I>
  T& at(size_t offset, I index) const {
    return reinterpret_cast<T*>(base_ + offset)[index];
  }
  size_t pair(bool captured, int from, int to) const {
    const auto n = static_cast<size_t>(size_);
    return (static_cast<size_t>(captured) * n + static_cast<size_t>(from)) * n + static_cast<size_t>(to);
  }
  void lay_out(int size);

  std::byte* base_ = nullptr;
  int size_ = 0;
  size_t slots_ = 0, calls_ = 0, met_ = 0, lanes_ = 0, sides_ = 0, chunks_ = 0, channels_ = 0, messages_ = 0,
         bytes_ = 0;
  size_t message_chunk_ = 0;
};

/// The start time of a process (clock ticks after boot), 0 if it has ended or waits to be reaped.
uint64_t start_of_process(int pid);

}  // namespace emulator::nccl
