// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/ptx.h"

#include <cstring>

#include "emulator/machine/fault.h"
#include "emulator/source/check.h"
#include "emulator/source/report.h"
#include "emulator/source/worker.h"

// Fragment layouts: PTX ISA 8.5, sections 9.7.14.5 (mma) and 9.7.14.5.15 (ldmatrix). `group` is lane / 4 and `pair` is
// lane % 4 there.

namespace emulator::source {

namespace {

void deliver(const CopyQueue::Copy& copy) {
  std::memcpy(copy.destination, copy.source, copy.source_bytes);
  std::memset(static_cast<char*>(copy.destination) + copy.source_bytes, 0, size_t{copy.bytes} - copy.source_bytes);
  check_copy_done(copy.destination, copy.bytes, copy.source, copy.source_bytes, copy.where);
}

uint16_t half_of(uint32_t word, int i) { return static_cast<uint16_t>(word >> (16 * i)); }

template <bool kTransposed>
void load_matrices(void** frames, int matrices) {
  for (int m = 0; m < matrices; ++m) {
    uint16_t element[8][8];
    for (int row = 0; row < 8; ++row)
      std::memcpy(element[row], static_cast<LdmatrixFrame*>(frames[8 * m + row])->row, 16);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = lane / 4, column = lane % 4 * 2;
      const uint32_t low = kTransposed ? element[column][row] : element[row][column];
      const uint32_t high = kTransposed ? element[column + 1][row] : element[row][column + 1];
      static_cast<LdmatrixFrame*>(frames[lane])->registers[m] = low | high << 16;
    }
  }
}

template <int K>
struct Tile {
  float a[16][K], b[K][8];
};

template <int K>
void multiply_add(void** frames, const Tile<K>& tile) {
  float sum[16][8];
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < 4; ++i)
      sum[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = static_cast<MmaFrame*>(frames[lane])->d[i];
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < K; ++k)
      for (int column = 0; column < 8; ++column) sum[row][column] += tile.a[row][k] * tile.b[k][column];
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < 4; ++i)
      static_cast<MmaFrame*>(frames[lane])->d[i] = sum[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}

/// 16-bit operands: register r of a holds rows group + 8 (r % 2), columns 2 pair + 8 (r / 2) and the next one; register
/// r of b holds rows 2 pair + 8 r and the next one of column `group`.
template <int K, float (*kToFloat)(uint16_t)>
void mma_half(void** frames, uint32_t) {
  Tile<K> tile;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& frame = *static_cast<MmaFrame*>(frames[lane]);
    const int group = lane / 4, pair = lane % 4;
    for (int r = 0; r < K / 4; ++r)
      for (int i = 0; i < 2; ++i)
        tile.a[group + r % 2 * 8][pair * 2 + r / 2 * 8 + i] = kToFloat(half_of(frame.a[r], i));
    for (int r = 0; r < K / 8; ++r)
      for (int i = 0; i < 2; ++i) tile.b[pair * 2 + r * 8 + i][group] = kToFloat(half_of(frame.b[r], i));
  }
  multiply_add(frames, tile);
}

void mma_tf32(void** frames, uint32_t) {
  Tile<8> tile;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& frame = *static_cast<MmaFrame*>(frames[lane]);
    const int group = lane / 4, pair = lane % 4;
    for (int r = 0; r < 4; ++r) tile.a[group + r % 2 * 8][pair + r / 2 * 4] = from_tf32(frame.a[r]);
    for (int r = 0; r < 2; ++r) tile.b[pair + r * 4][group] = from_tf32(frame.b[r]);
  }
  multiply_add(frames, tile);
}

float bf16_to_float(uint16_t bits) { return ptx::matrix::Bf16::number(bits); }
float f16_to_float(uint16_t bits) { return ptx::matrix::F16::number(bits); }

}  // namespace

void copy_async(void* shared, const void* global, int bytes, int source_bytes, SourceLine where) {
  Worker& worker = *Worker::running();
  worker.check_shared("cp.async", shared, static_cast<size_t>(bytes), where);
  if (source_bytes) {
    if (reinterpret_cast<uintptr_t>(global) % static_cast<size_t>(bytes))
      worker.report().fail([&] {
        return cat("cp.async at ", where, ": global address ", hex(reinterpret_cast<uintptr_t>(global)),
                   " is not a multiple of ", bytes);
      });
    if (worker.is_shared(reinterpret_cast<uintptr_t>(global), 1))
      worker.report().fail([&] { return cat("cp.async at ", where, ": the source is shared memory"); });
  }
  check_copy_issued(shared, static_cast<size_t>(bytes), global, static_cast<size_t>(source_bytes), where);
  std::memset(shared, 0xff, static_cast<size_t>(bytes));
  if (!worker.copy_queue().push(
          {shared, global, static_cast<uint8_t>(bytes), static_cast<uint8_t>(source_bytes), where}))
    worker.report().fail(
        [&] { return cat("cp.async at ", where, ": more copies in flight than the emulator holds for one thread"); });
}

void copy_async_commit(SourceLine where) {
  if (!Worker::running()->copy_queue().commit())
    Worker::running()->report().fail(
        [&] { return cat("cp.async.commit_group at ", where, ": more groups in flight than the emulator holds"); });
}
void copy_async_wait_group(int pending) { Worker::running()->copy_queue().wait(pending, deliver); }
void copy_async_wait_all() { Worker::running()->copy_queue().wait_all(deliver); }

const CollectiveOp kLdmatrixX1{"ldmatrix.x1", [](void** f, uint32_t) { load_matrices<false>(f, 1); }};
const CollectiveOp kLdmatrixX2{"ldmatrix.x2", [](void** f, uint32_t) { load_matrices<false>(f, 2); }};
const CollectiveOp kLdmatrixX4{"ldmatrix.x4", [](void** f, uint32_t) { load_matrices<false>(f, 4); }};
const CollectiveOp kLdmatrixX1Trans{"ldmatrix.x1.trans", [](void** f, uint32_t) { load_matrices<true>(f, 1); }};
const CollectiveOp kLdmatrixX2Trans{"ldmatrix.x2.trans", [](void** f, uint32_t) { load_matrices<true>(f, 2); }};
const CollectiveOp kLdmatrixX4Trans{"ldmatrix.x4.trans", [](void** f, uint32_t) { load_matrices<true>(f, 4); }};

void ldmatrix(const CollectiveOp& op, int matrices, uint32_t* registers, const void* row, SourceLine where) {
  if (Worker::running()->lane() < 8 * matrices) {  // the other lanes' addresses are ignored
    Worker::running()->check_shared(op.name, row, 16, where);
    check_read(row, 16, where);
  }
  LdmatrixFrame frame{row, registers};
  collective(op, 0xffffffffu, &frame, where);
}

const CollectiveOp kMmaK16Bf16{"mma.m16n8k16.bf16", mma_half<16, bf16_to_float>};
const CollectiveOp kMmaK16F16{"mma.m16n8k16.f16", mma_half<16, f16_to_float>};
const CollectiveOp kMmaK8Bf16{"mma.m16n8k8.bf16", mma_half<8, bf16_to_float>};
const CollectiveOp kMmaK8F16{"mma.m16n8k8.f16", mma_half<8, f16_to_float>};
const CollectiveOp kMmaK8Tf32{"mma.m16n8k8.tf32", mma_tf32};

void mma(const CollectiveOp& op, float* d, const uint32_t* a, const uint32_t* b, SourceLine where) {
  MmaFrame frame{d, a, b};
  collective(op, 0xffffffffu, &frame, where);
}

}  // namespace emulator::source
