// SPDX-License-Identifier: Apache-2.0
// mma.sp: half of each four neighbours of a row of a (tf32: two; 4-bit types: four pairs) is stored, and two bits give
// its place (PTX ISA 9.0, "Multiply-and-accumulate with sparse matrix A"). The elements that are there
// lie like a dense matrix of half the depth. Elements that are not there take no part: 0 times infinity does not occur.
#include "emulator/ptx/matrix/matrix_fragments.h"

namespace emulator::ptx::matrix {
namespace {

constexpr int kRows = 16;

struct Sparse {
  Multiply dense;  ///< the stored elements of a; the shape is the instruction's
  Ref metadata = kNoRef;
  int first_lane = 0;  ///< in each group of four lanes, the first of those …
  int lanes = 1;       ///< … whose metadata count
  bool is_ordered = false;
};

/// The 16 bits (elements of 16 and 32 bits) or 32 bits of metadata of a piece of a row.
template <class E>
uint32_t piece(const Sparse& s, const uint32_t* metadata, int row, int number) {
  const int group = 4 * (row % kLine) + s.first_lane;
  if constexpr (sizeof(typename E::Bits) == 1) return metadata[group + 2 * number + row / kLine];
  return metadata[group + number] >> (16 * (row / kLine)) & 0xffffu;
}

/// Where each element of `a` that is there belongs along the depth, row by row.
template <class E>
void read_places(Warp& w, const Instruction* i, const Sparse& s, int stored, uint8_t* places) {
  constexpr bool kPairs = sizeof(typename E::Bits) == 4;  // one of two neighbours: two fields name its halves
  constexpr int kBits = sizeof(typename E::Bits) == 1 ? 32 : 16;
  const uint32_t* const metadata = w.in<uint32_t>(s.metadata);
  const auto wrong = [&](int row, uint32_t four) {
    w.fail(i, 4 * (row % kLine) + s.first_lane, FaultCode::launch_failure,
           cat("mma.sp: metadata ", four, " of row ", row,
               kPairs         ? " are none of 4 and 14"
               : s.is_ordered ? " do not rise"
                              : " say one place twice"));
  };
  constexpr int kUnit = kPacked<E>;  // elements that have one place together
  for (int row = 0; row < kRows; ++row)
    for (int k = 0; k < stored / kUnit; k += kPairs ? 1 : 2) {  // four bits at a time
      const int bit = (kPairs ? 4 : 2) * k;
      const uint32_t four = piece<E>(s, metadata, row, bit / kBits) >> (bit % kBits) & 15u;
      const uint32_t first = four & 3u, second = four >> 2;
      uint8_t* const to = places + row * stored + k * kUnit;
      if constexpr (kPairs) {
        if (four != 4 && four != 14) wrong(row, four);
        to[0] = static_cast<uint8_t>(2 * k + (four == 14 ? 1 : 0));
      } else {
        if (first == second || (s.is_ordered && first > second)) wrong(row, four);
        for (int e = 0; e < kUnit; ++e) {
          to[e] = static_cast<uint8_t>((2 * k + static_cast<int>(first)) * kUnit + e);
          to[kUnit + e] = static_cast<uint8_t>((2 * k + static_cast<int>(second)) * kUnit + e);
        }
      }
    }
}

template <class N>
EMULATOR_FUSED void multiply_row(const N* a, const uint8_t* places, int stored, const N* b, N* sums) {
  Eight<N> sum = eight_at(sums);
  for (int k = 0; k < stored; ++k) sum += a[k] * eight_at(b + places[k] * kLine);
  eight_at(sums) = sum;
}

template <class A, class B>
const Instruction* multiply(Warp& w, const Instruction* i) {
  static_assert(kPart<A> == kPart<B>);
  using N = typename A::Number;
  const Instruction* next = nullptr;
  if (!whole_warp(w, i, "mma.sp.sync", next)) return next;
  const auto& s = *static_cast<const Sparse*>(i->more);
  const Multiply& m = s.dense;
  const int stored = m.shape.k / 2, parts = stored / kPart<A>;
  alignas(64) N lines[kLine * kMostDepth], b[kLine * kMostDepth], sums[2 * kBlock], a[kMostDepth];
  uint8_t places[kRows * kMostDepth];
  read_places<A>(w, i, s, stored, places);
  unpack_turned<B>(w, m.b, 1, 0, m.shape.k / kPart<B>, b);
  // Registers of d may be those of the others: nothing is written before all is read.
  for (int block = 0; block < 2; ++block) {
    unpack<A>(w, m.a, 2, block, parts, lines);
    N* const own = sums + block * kBlock;
    alignas(64) N products[kBlock] = {};
    load_sums(w, m, block, own);
    N* const to = std::is_same_v<N, int32_t> ? products : own;
    for (int row = 0; row < kLine; ++row) {
      for (int k = 0; k < stored; ++k) a[k] = lines[(k / kPart<A> * kLine + row) * kPart<A> + k % kPart<A>];
      multiply_row(a, places + (block * kLine + row) * stored, stored, b, to + row * kLine);
    }
    if constexpr (std::is_same_v<N, int32_t>)
      for (int e = 0; e < kBlock; ++e) own[e] = add_s32(own[e], products[e], m.saturate);
  }
  for (int block = 0; block < 2; ++block) store_sums(w, m, block, sums + block * kBlock);
  return i + 1;
}

bool has_shape(Type a, const Shape& s) {
  if (s.m != kRows || s.n != kLine) return false;
  if (a == Type::tf32) return s.k == 8 || s.k == 16;
  if (a == Type::f16 || a == Type::bf16) return s.k == 16 || s.k == 32;
  if (a == Type::s4 || a == Type::u4) return s.k == 64 || s.k == 128;
  return s.k == 64 || (is_integer(a) && s.k == 32);
}

}  // namespace

bool is_sparse(const Lowering& l) { return l.has("sp") || l.has("sp::ordered_metadata"); }

void lower_sparse_mma(Lowering& l) {
  Sparse s;
  Multiply& m = s.dense;
  const bool sync = read_modifiers(l, m, {"sp", "sp::ordered_metadata"});
  s.is_ordered = l.has("sp::ordered_metadata");
  const Type a = l.type(1), b = l.type(2);
  const Handler handler = for_elements(a, b, []<class A, class B>() -> Handler { return multiply<A, B>; });
  if (!sync || !handler || !has_shape(a, m.shape)) l.unknown("no such mma.sp here");
  read_operands(l, m, m.shape.k / 2);
  s.metadata = l.source(l.operand(4), Type::b32);
  // Each 4 bits are of two elements (tf32: of one; 4-bit types: of four). In a group a lane has 32 bits of two rows.
  const int bits = m.shape.k / 2 * (a == Type::tf32 ? 4 : a == Type::s4 || a == Type::u4 ? 1 : 2);  // bits per row
  s.lanes = 2 * bits / 32;
  const Operand& selector = l.operand(5);
  if (selector.kind != Operand::Kind::integer || selector.value < 0 || selector.value >= 4 / s.lanes)
    l.unknown("the sparsity selector");
  s.first_lane = static_cast<int>(selector.value) * s.lanes;
  l.emit(handler).more = l.keep(s);
}

}  // namespace emulator::ptx::matrix
