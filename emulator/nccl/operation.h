// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace emulator::nccl {

enum class Kind : uint8_t {
  none,
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  split,  ///< no communication on a stream, but a call that all ranks make in the same order as the others
};

size_t size_of(ncclDataType_t type);
const char* name_of(ncclDataType_t type);
const char* name_of(Kind kind);

/// The ranks of a collective must agree on this. Two words, so that it lies in shared memory as two atomics.
struct Descriptor {
  Kind kind = Kind::none;
  uint8_t type = 0;
  uint8_t op = 0;  ///< ncclRedOp_t, or kScaledSum
  bool captured = false;
  int32_t root = -1;
  uint64_t count = 0;

  static constexpr uint8_t kScaledSum = ncclNumOps;  ///< from ncclRedOpCreatePreMulSum: the factors may differ

  ncclDataType_t dtype() const { return static_cast<ncclDataType_t>(type); }
  size_t bytes() const { return count * size_of(dtype()); }
  bool reduces() const { return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter; }
  uint64_t word() const;
  static Descriptor of(uint64_t word, uint64_t count);
  bool operator==(const Descriptor&) const = default;
  /// `all_reduce of 1024 f32 (sum)`
  std::string text() const;
};

/// Bytes of a rank's buffers in a collective.
struct BufferSizes {
  size_t send, recv;
};
BufferSizes buffer_sizes(const Descriptor& what, int rank, int ranks);

/// A collective as a rank has called it.
struct Collective {
  Descriptor what;
  uint64_t number = 0;  ///< the how-manieth call of the communicator, from 1
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  const void* device_factor = nullptr;  ///< factor of a scaled sum: read when the collective runs
  uint64_t factor = 0;                  ///< else its bits, in the collective's type
};

/// A send or a receive as a rank has called it.
struct Transfer {
  bool sends = false;
  bool captured = false;
  ncclDataType_t type = ncclInt8;
  int peer = 0;
  uint64_t count = 0;
  std::byte* buffer = nullptr;
  uint64_t number = 0;  ///< the how-manieth of its direction between the two ranks, from 1

  size_t bytes() const { return count * size_of(type); }
  /// `send of 4 f32 to rank 1`
  std::string text() const;
};

}  // namespace emulator::nccl
