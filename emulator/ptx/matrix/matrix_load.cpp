// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix, movmatrix: matrices of 8 x 8 elements of 16 bits. The forms with 8-bit elements (m16n16, m8n16,
// m16n8), which begin with sm_100, are unknown here.
#include "emulator/ptx/instructions/access.h"
#include "emulator/ptx/matrix/matrix_layout.h"

namespace emulator::ptx::matrix {

namespace {

constexpr int kLines = 8, kLineWords = 4, kLineBytes = 16;

struct Move {
  Addresses address;
  Where where = Where::generic;
  int count = 1;
  Registers registers;
};

/// The addresses of the lines, one for each lane with an address.
void find_lines(Warp& w, const Instruction* i, const Move& m, bool write, char** at) {
  const Block& block = *w.block;
  const int count = m.count * kLines;
  for (int lane = 0; lane < count; ++lane) {
    const uint64_t address = m.address.at(w, lane);
    const bool plain = m.where == Where::shared && address >= kSharedBase && address + kLineBytes <= block.shared_end &&
                       address % kLineBytes == 0;
    at[lane] = plain ? block.shared + address : resolve(w, i, lane, m.where, address, kLineBytes, write);
  }
  if (checked(w)) {
    const uint32_t lanes = count == kLanes ? kAllLanes : (1u << count) - 1;
    note_access(w, i, {Space::shared, Order::weak, Scope::none, write, false, lanes, kLineBytes, at});
  }
}

/// One register of 32 lanes is the matrix, line by line.
void transpose(uint32_t* words) {
  uint16_t from[kLines][kLines], to[kLines][kLines];
  std::memcpy(from, words, sizeof(from));
  for (int row = 0; row < kLines; ++row)
    for (int column = 0; column < kLines; ++column) to[row][column] = from[column][row];
  std::memcpy(words, to, sizeof(to));
}

template <bool kTransposed>
const Instruction* ldmatrix(Warp& w, const Instruction* i) {
  const Instruction* next = nullptr;
  if (!whole_warp(w, i, "ldmatrix", next)) return next;
  const auto& m = *static_cast<const Move*>(i->more);
  alignas(32) uint32_t words[4][kLanes];  // an address may be in a register that is written
  char* lines[kLanes];
  find_lines(w, i, m, false, lines);
  for (int line = 0; line < m.count * kLines; ++line)
    std::memcpy(words[line / kLines] + line % kLines * kLineWords, lines[line], kLineBytes);
  for (int k = 0; k < m.count; ++k) {
    if (kTransposed) transpose(words[k]);
    const Ref to = m.registers[static_cast<size_t>(k)];
    if (to != kNoRef) std::memcpy(w.out<uint32_t>(to), words[k], sizeof(words[k]));
  }
  return i + 1;
}

template <bool kTransposed>
const Instruction* stmatrix(Warp& w, const Instruction* i) {
  const Instruction* next = nullptr;
  if (!whole_warp(w, i, "stmatrix", next)) return next;
  const auto& m = *static_cast<const Move*>(i->more);
  char* lines[kLanes];
  find_lines(w, i, m, true, lines);
  for (int k = 0; k < m.count; ++k) {
    uint32_t words[kLanes];
    std::memcpy(words, w.in<uint32_t>(m.registers[static_cast<size_t>(k)]), sizeof(words));
    if (kTransposed) transpose(words);
    for (int line = 0; line < kLines; ++line)
      std::memcpy(lines[k * kLines + line], words + line * kLineWords, kLineBytes);
  }
  return i + 1;
}

const Instruction* movmatrix(Warp& w, const Instruction* i) {
  const Instruction* next = nullptr;
  if (!whole_warp(w, i, "movmatrix", next)) return next;
  uint32_t words[kLanes];
  std::memcpy(words, w.in<uint32_t>(i->a), sizeof(words));
  transpose(words);
  std::memcpy(w.out<uint32_t>(i->d), words, sizeof(words));
  return i + 1;
}

/// The modifiers that ldmatrix and stmatrix share.
bool read_move(Lowering& l, Move& m) {
  bool transposed = false;
  for (const std::string_view mod : l.mods()) {
    if (mod == "trans")
      transposed = true;
    else if (mod == "x1" || mod == "x2" || mod == "x4")
      m.count = mod[1] - '0';
    else if (mod != "sync" && mod != "aligned" && mod != "m8n8" && mod != "b16" && mod != "shared" &&
             mod != "shared::cta")
      l.unknown(cat('.', mod));
  }
  if (!l.has("m8n8") || !l.has("b16")) l.unknown("matrices of 8 x 8 elements of 16 bits only");
  m.where = read_where(l);
  return transposed;
}

}  // namespace

void lower_ldmatrix(Lowering& l) {
  Move m;
  const bool transposed = read_move(l, m);
  if (read_registers(l, l.operand(0), Type::b32, true, m.registers) != m.count) l.unknown("the number of registers");
  m.address = read_addresses(l, l.operand(1));
  l.emit(transposed ? ldmatrix<true> : ldmatrix<false>).more = l.keep(m);
}

void lower_stmatrix(Lowering& l) {
  Move m;
  const bool transposed = read_move(l, m);
  m.address = read_addresses(l, l.operand(0));
  if (read_registers(l, l.operand(1), Type::b32, false, m.registers) != m.count) l.unknown("the number of registers");
  l.emit(transposed ? stmatrix<true> : stmatrix<false>).more = l.keep(m);
}

void lower_movmatrix(Lowering& l) {
  for (const std::string_view mod : l.mods())
    if (mod != "sync" && mod != "aligned" && mod != "m8n8" && mod != "trans" && mod != "b16") l.unknown(cat('.', mod));
  if (!l.has("trans") || !l.has("m8n8")) l.unknown();
  l.emit(movmatrix, l.destination(l.operand(0)), l.source(l.operand(1), Type::b32));
}

}  // namespace emulator::ptx::matrix
