// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "emulator/ptx/lower/lowering.h"

namespace emulator::ptx {

namespace {

/// The opcodes of a root, `mad` or `cp`, the longest names first.
using Opcodes = std::unordered_map<std::string_view, std::vector<const Opcode*>>;

Opcodes all_opcodes() {
  const Family families[] = {integer_family(), float_family(),    half_family(),    convert_family(),
                             move_family(),    memory_family(),   atomic_family(),  copy_family(),
                             control_family(), warp_family(),     barrier_family(), matrix_family(),
                             wgmma_family(),   mbarrier_family(), bulk_family(),    cluster_family(),
                             call_family(),    texture_family()};
  Opcodes opcodes;
  for (const Family& family : families)
    for (size_t i = 0; i < family.count; ++i) {
      const std::string_view name = family.opcodes[i].op;
      opcodes[name.substr(0, name.find('.'))].push_back(&family.opcodes[i]);
    }
  for (auto& [root, list] : opcodes)
    std::stable_sort(list.begin(), list.end(),
                     [](const Opcode* a, const Opcode* b) { return a->op.size() > b->op.size(); });
  return opcodes;
}

/// Whether the statement's modifiers begin with those of a dotted name.
bool matches(const Statement& s, std::string_view name) {
  size_t dot = name.find('.');
  for (size_t i = 0; dot != std::string_view::npos; ++i) {
    name.remove_prefix(dot + 1);
    dot = name.find('.');
    if (i == s.mods.size() || s.mods[i] != name.substr(0, dot)) return false;
  }
  return true;
}

}  // namespace

const Opcode* find_opcode(const Statement& s) {
  static const Opcodes opcodes = all_opcodes();
  const auto found = opcodes.find(s.op);
  if (found == opcodes.end()) return nullptr;
  for (const Opcode* const opcode : found->second)
    if (matches(s, opcode->op)) return opcode;
  return nullptr;
}

}  // namespace emulator::ptx
