// SPDX-License-Identifier: Apache-2.0
#include "emulator/nccl/operation.h"

#include "emulator/machine/fault.h"

namespace emulator::nccl {

size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 1;
  }
}

const char* name_of(ncclDataType_t type) {
  static constexpr const char* kNames[] = {"i8",  "u8",  "i32", "u32",  "i64",    "u64",
                                           "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};
  return kNames[type];
}

const char* name_of(Kind kind) {
  static constexpr const char* kNames[] = {"nothing",        "all_reduce", "reduce", "broadcast", "all_gather",
                                           "reduce_scatter", "all_to_all", "gather", "scatter",   "ncclCommSplit"};
  return kNames[static_cast<int>(kind)];
}

uint64_t Descriptor::word() const {
  return static_cast<uint64_t>(kind) | static_cast<uint64_t>(type) << 8 | static_cast<uint64_t>(op) << 16 |
         static_cast<uint64_t>(captured) << 24 | static_cast<uint64_t>(static_cast<uint32_t>(root)) << 32;
}

Descriptor Descriptor::of(uint64_t word, uint64_t count) {
  Descriptor d;
  d.kind = static_cast<Kind>(word & 0xff);
  d.type = static_cast<uint8_t>(word >> 8);
  d.op = static_cast<uint8_t>(word >> 16);
  d.captured = (word >> 24 & 1) != 0;
  d.root = static_cast<int32_t>(word >> 32);
  d.count = count;
  return d;
}

std::string Descriptor::text() const {
  static constexpr const char* kOps[] = {"sum", "prod", "max", "min", "avg", "scaled sum"};
  if (kind == Kind::none || kind == Kind::split) return name_of(kind);
  std::string text = cat(name_of(kind), " of ", count, ' ', name_of(dtype()));
  std::string notes;
  const auto note = [&notes](const std::string& part) { notes += (notes.empty() ? " (" : ", ") + part; };
  if (reduces()) note(kOps[op]);
  if (root >= 0) note(cat("root ", root));
  if (captured) note("captured into a graph");
  return text + notes + (notes.empty() ? "" : ")");
}

BufferSizes buffer_sizes(const Descriptor& what, int rank, int ranks) {
  const size_t block = what.bytes(), all = block * static_cast<size_t>(ranks);
  const size_t block_of_root = what.root == rank ? block : 0, all_of_root = what.root == rank ? all : 0;
  switch (what.kind) {
    case Kind::reduce:
      return {block, block_of_root};
    case Kind::broadcast:
      return {block_of_root, block};
    case Kind::gather:
      return {block, all_of_root};
    case Kind::scatter:
      return {all_of_root, block};
    case Kind::all_gather:
      return {block, all};
    case Kind::reduce_scatter:
      return {all, block};
    case Kind::all_to_all:
      return {all, all};
    default:
      return {block, block};
  }
}

std::string Transfer::text() const {
  return cat(sends ? "send" : "receive", " of ", count, ' ', name_of(type), sends ? " to rank " : " from rank ", peer,
             captured ? " (captured into a graph)" : "");
}

}  // namespace emulator::nccl
