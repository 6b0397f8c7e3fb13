// SPDX-License-Identifier: Apache-2.0
// mma.sync of dense matrices, and its parts shared by wmma.mma and mma.sp. Products and sums are computed in f32 (PTX
// leaves the bits of a sum open, and tensor cores keep a few more or less). f16 accumulators are rounded once per
// instruction, integers and f64 are exact.
#include <algorithm>
#include <charconv>

#include "emulator/ptx/matrix/matrix_fragments.h"
#include "emulator/ptx/time/time_count.h"

namespace emulator::ptx::matrix {

namespace {

/// sums += a b for a block of 8 x 8.
template <class E>
EMULATOR_FUSED void multiply_block(const typename E::Number* a, const typename E::Number* b, int parts,
                                   typename E::Number* sums) {
  using N = typename E::Number;
  Eight<N> sum[kLine];
  for (int row = 0; row < kLine; ++row) sum[row] = eight_at(sums + row * kLine);
  for (int part = 0; part < parts; ++part)
    for (int k = 0; k < kPart<E>; ++k) {
      const Eight<N> y = eight_at(b + (part * kPart<E> + k) * kLine);
      for (int row = 0; row < kLine; ++row) sum[row] += a[(part * kLine + row) * kPart<E> + k] * y;
    }
  for (int row = 0; row < kLine; ++row) eight_at(sums + row * kLine) = sum[row];
}

template <class A, class B>
const Instruction* multiply(Warp& w, const Instruction* i) {
  static_assert(kPart<A> == kPart<B>);
  using N = typename A::Number;
  const Instruction* next = nullptr;
  if (!whole_warp(w, i, "mma.sync", next)) return next;
  if (sampled()) return i + 1;
  const auto& m = *static_cast<const Multiply*>(i->more);
  const int rows = m.shape.m / kLine, columns = m.shape.n / kLine, parts = m.shape.k / kPart<A>;
  const int depth = parts * kPart<A>;
  alignas(64) N a[kMostElements], b[kMostElements], sums[kMostSums * kBlock];
  for (int row = 0; row < rows; ++row) unpack<A>(w, m.a, rows, row, parts, a + row * kLine * depth);
  for (int column = 0; column < columns; ++column)
    unpack_turned<B>(w, m.b, columns, column, parts, b + column * kLine * depth);
  // Registers of d may be those of a, b and c in any order: nothing is written before all is read.
  for (int column = 0; column < columns; ++column)
    for (int row = 0; row < rows; ++row) {
      const int block = row + rows * column;
      N* const sum = sums + block * kBlock;
      if constexpr (std::is_same_v<N, int32_t>) {
        alignas(64) N products[kBlock] = {};
        multiply_block<A>(a + row * kLine * depth, b + column * kLine * depth, parts, products);
        load_sums(w, m, block, sum);
        for (int e = 0; e < kBlock; ++e) sum[e] = add_s32(sum[e], products[e], m.saturate);
      } else {
        load_sums(w, m, block, sum);
        multiply_block<A>(a + row * kLine * depth, b + column * kLine * depth, parts, sum);
      }
    }
  for (int block = 0; block < rows * columns; ++block) store_sums(w, m, block, sums + block * kBlock);
  return i + 1;
}

const Instruction* multiply_bits(Warp& w, const Instruction* i) {
  const Instruction* next = nullptr;
  if (!whole_warp(w, i, "mma.sync", next)) return next;
  if (sampled()) return i + 1;
  const auto& m = *static_cast<const Multiply*>(i->more);
  const int rows = m.shape.m / kLine, columns = m.shape.n / kLine, parts = m.shape.k / kBitsOfPart;
  int32_t sums[kMostSums * kBlock];
  for (int block = 0; block < rows * columns; ++block) {
    int32_t* const sum = sums + block * kBlock;
    load_sums(w, m, block, sum);
    for (int part = 0; part < parts; ++part) {
      const auto* const a = w.in<uint64_t>(m.a[static_cast<size_t>(block % rows + part * rows)]);
      const auto* const b = w.in<uint64_t>(m.b[static_cast<size_t>(block / rows + part * columns)]);
      for (int e = 0; e < kBlock; ++e)
        for (int half = 0; half < 2; ++half) {
          const uint64_t x = a[e / kLine * 2 + half], y = b[e % kLine * 2 + half];
          sum[e] += std::popcount(m.exclusive ? x ^ y : x & y);
        }
    }
  }
  for (int block = 0; block < rows * columns; ++block) store_sums(w, m, block, sums + block * kBlock);
  return i + 1;
}

}  // namespace

bool is_integer(Type element) {
  return element == Type::s8 || element == Type::u8 || element == Type::s4 || element == Type::u4;
}

namespace {

/// May elements of this type be summed up in that one?
bool is_sum_of(Type sum, Type element) {
  if (element == Type::f64) return sum == Type::f64;
  if (is_integer(element) || element == Type::b1) return sum == Type::s32;
  if (element == Type::bf16 || element == Type::tf32) return sum == Type::f32;
  return sum == Type::f32 || sum == Type::f16;
}

bool has_shape(Type a, const Shape& s) {
  if (a == Type::f64) return s == Shape{8, 8, 4} || (s.m == 16 && s.n == 8 && (s.k == 4 || s.k == 8 || s.k == 16));
  if (a == Type::tf32) return s.m == 16 && s.n == 8 && (s.k == 4 || s.k == 8);
  if (a == Type::f16 || a == Type::bf16) return s.m == 16 && s.n == 8 && (s.k == 8 || s.k == 16);
  if (a == Type::s8 || a == Type::u8)
    return s == Shape{8, 8, 16} || (s.m == 16 && s.n == 8 && (s.k == 16 || s.k == 32));
  if (a == Type::s4 || a == Type::u4)
    return s == Shape{8, 8, 32} || (s.m == 16 && s.n == 8 && (s.k == 32 || s.k == 64));
  if (a == Type::b1) return s == Shape{8, 8, 128} || (s.m == 16 && s.n == 8 && (s.k == 128 || s.k == 256));
  return s.m == 16 && s.n == 8 && (s.k == 16 || s.k == 32);
}

void lower_mma(Lowering& l) {
  if (is_sparse(l)) return lower_sparse_mma(l);
  Multiply m;
  const bool sync = read_modifiers(l, m, {"rn", "xor", "and", "popc"});
  const Type a = l.type(1);
  read_bit_operation(l, m, a);
  const Handler handler = multiply_handler(a, l.type(2));
  // m8n8k4 of f16 works by quarters of a warp (sm_70), with layouts of its own.
  if (!sync || !handler || !has_shape(a, m.shape)) l.unknown("no such mma here");
  read_operands(l, m, m.shape.k);
  l.emit(handler).more = l.keep(m);
}

}  // namespace

bool read_modifiers(Lowering& l, Multiply& m, std::initializer_list<std::string_view> others) {
  bool sync = false;
  for (const std::string_view mod : l.mods()) {
    if (mod == "sync")
      sync = true;
    else if (mod == "satfinite")
      m.saturate = true;
    else if (read_shape(mod, m.shape) || mod == "aligned" || mod == "row" || mod == "col" ||
             type_of(mod) != Type::none || std::find(others.begin(), others.end(), mod) != others.end())
      continue;
    else
      l.unknown(cat('.', mod));
  }
  m.d_type = l.type(0);
  m.c_type = l.type(3);
  return sync;
}

void read_operands(Lowering& l, Multiply& m, int depth_of_a) {
  const Type a = l.type(1), b = l.type(2);
  if (!is_sum_of(m.d_type, a) || m.c_type != m.d_type) l.unknown("the type of the sums");
  if (m.saturate && !is_integer(a)) l.unknown(".satfinite");
  const Type word = a == Type::f64 ? Type::f64 : Type::b32;
  const Type sum = m.c_type == Type::f16 ? Type::b32 : m.c_type;
  const int sums = sum_registers(m.shape.m, m.shape.n, m.d_type);
  if (read_registers(l, l.operand(0), sum, true, m.d) != sums ||
      read_registers(l, l.operand(1), word, false, m.a) != operand_registers(m.shape.m, depth_of_a, a) ||
      read_registers(l, l.operand(2), word, false, m.b) != operand_registers(m.shape.n, m.shape.k, b) ||
      read_registers(l, l.operand(3), sum, false, m.c) != sums)
    l.unknown("the number of registers");
}

void read_bit_operation(Lowering& l, Multiply& m, Type element) {
  m.exclusive = l.has("xor");
  const bool some = m.exclusive || l.has("and") || l.has("popc");
  const bool right = m.exclusive != l.has("and") && l.has("popc");
  if (element == Type::b1 ? !right : some) l.unknown("no such mma here");
}

bool read_shape(std::string_view text, Shape& shape) {
  Shape s;
  const char *at = text.data(), *const end = at + text.size();
  for (const auto& [letter, value] : {std::pair{'m', &s.m}, {'n', &s.n}, {'k', &s.k}}) {
    if (at == end || *at != letter) return false;
    const auto [rest, error] = std::from_chars(at + 1, end, *value);
    if (error != std::errc() || *value <= 0) return false;
    at = rest;
  }
  if (at != end) return false;
  shape = s;
  return true;
}

int operand_registers(int lines, int depth, Type type) {
  const bool halves = type == Type::s4 || type == Type::u4;
  const int part = type == Type::b1                          ? kBitsOfPart
                   : type == Type::f64 || type == Type::tf32 ? 4
                   : halves                                  ? 32
                                                             : 16 / bytes_of(type);
  return lines / kLine * (depth / part);
}

int sum_registers(int m, int n, Type type) { return m / kLine * (n / kLine) * (type == Type::f16 ? 1 : 2); }

Handler multiply_handler(Type a, Type b) {
  if (a == Type::f64 && b == Type::f64) return multiply<F64, F64>;
  if (a == Type::b1 && b == Type::b1) return multiply_bits;
  return for_elements(a, b, []<class A, class B>() -> Handler { return multiply<A, B>; });
}

}  // namespace emulator::ptx::matrix

namespace emulator::ptx {

Family matrix_family() {
  using namespace matrix;
  static constexpr Opcode kOpcodes[] = {
      {"ldmatrix", lower_ldmatrix},   {"stmatrix", lower_stmatrix, Roles::all_read},
      {"movmatrix", lower_movmatrix}, {"mma", lower_mma},
      {"wmma.load", lower_wmma_load}, {"wmma.store", lower_wmma_store, Roles::all_read},
      {"wmma.mma", lower_wmma_mma},
  };
  return {kOpcodes, std::size(kOpcodes)};
}

}  // namespace emulator::ptx
