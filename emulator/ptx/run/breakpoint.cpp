// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/run/breakpoint.h"

#include <cstdio>
#include <mutex>

#include "emulator/machine/options.h"
#include "emulator/ptx/lower/liveness.h"
#include "emulator/ptx/lower/register_places.h"

namespace emulator::ptx {

namespace {

struct Place {
  std::string kernel;
  uint32_t line = 0;  ///< line of the source, or of the PTX without line information; 0: the kernel's first
};

const Place& wanted() {
  static const Place place = [] {
    const std::string& text = options().break_at;
    const size_t colon = text.rfind(':');
    const bool has_line = colon != std::string::npos && colon + 1 < text.size() &&
                          text.find_first_not_of("0123456789", colon + 1) == std::string::npos;
    if (!has_line) return Place{text, 0};
    return Place{text.substr(0, colon), static_cast<uint32_t>(std::stoul(text.substr(colon + 1)))};
  }();
  return place;
}

std::string value_text(const Warp& w, const DebugTable::Register& r, int lane) {
  char text[64];
  if (r.type == Type::f32)
    std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(w.in<float>(r.place)[lane]));
  else if (r.type == Type::f64)
    std::snprintf(text, sizeof(text), "%.17g", w.in<double>(r.place)[lane]);
  else if (bytes_of(r.type) == 8)
    std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(w.in<uint64_t>(r.place)[lane]));
  else if (is_signed(r.type))
    std::snprintf(text, sizeof(text), "%d", w.in<int32_t>(r.place)[lane]);
  else
    std::snprintf(text, sizeof(text), "0x%x", w.in<uint32_t>(r.place)[lane]);
  return text;
}

std::string register_text(const Warp& w, const DebugTable::Register& r) {
  if (r.type == Type::pred) {
    char text[16];
    std::snprintf(text, sizeof(text), "0x%08x", w.predicates[r.place] & w.mask);
    return text;
  }
  if (bytes_of(r.type) == 16) return "(128 bits)";
  const int first = std::countr_zero(w.mask);
  const std::string value = value_text(w, r, first);
  bool same = true;
  std::string all = "{";
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool active = w.mask >> lane & 1;
    const std::string one = active ? value_text(w, r, lane) : "-";
    same = same && (!active || one == value);
    all += cat(lane ? ", " : "", one);
  }
  return same ? value + " in all lanes" : all + "}";
}

/// The PTX of a line, without the white space around it.
std::string ptx_text(const Kernel& kernel, uint32_t line) {
  const std::string& text = kernel.module->text().text;
  size_t begin = 0;
  for (uint32_t n = 1; n < line && begin != std::string::npos; ++n)
    if ((begin = text.find('\n', begin)) != std::string::npos) ++begin;
  if (begin == std::string::npos) return "";
  begin = text.find_first_not_of(" \t", begin);
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

bool breaks_in(const Kernel& kernel) {
  if (options().break_at.empty()) return false;
  const std::string& name = wanted().kernel;
  return kernel.name.find(name) != std::string::npos || demangled(kernel.name).find(name) != std::string::npos;
}

void keep_debug_table(Kernel& kernel, const Function& body, const Liveness& liveness, const RegisterPlaces& places,
                      const std::vector<size_t>& start) {
  auto table = std::make_shared<DebugTable>();
  table->live.resize(kernel.code.size());
  for (size_t r = 0; r < body.registers.size(); ++r) {
    if (places.place[r] == kNoRef) continue;
    const int index = static_cast<int>(table->registers.size());
    table->registers.push_back({std::string(body.registers[r].name), body.registers[r].type, places.place[r]});
    for (size_t s = 0; s + 1 < start.size(); ++s)
      if (start[s] < start[s + 1] && liveness.live_at(static_cast<int>(r), static_cast<Point>(2 * s)))
        table->live[start[s]].push_back(index);
  }
  kernel.debug = std::move(table);
}

void look_at(const Warp& w, const Instruction* i) {
  const Kernel& kernel = w.kernel();
  const Line& line = kernel.lines[i->line];
  const uint32_t here = line.line ? line.line : line.ptx_line;
  if (wanted().line ? here != wanted().line : i != kernel.code.data()) return;
  static std::mutex mutex;
  static uint64_t last_launch = 0;
  const std::lock_guard lock(mutex);
  if (last_launch == w.block->grid->launch->number) return;
  last_launch = w.block->grid->launch->number;

  std::string text = cat("Breakpoint in ", launch_text(*w.block->grid->launch), "\n", thread_text(w, std::countr_zero(w.mask)),
                         ", warp ", w.index, " at ", kernel.where(i), "\n=> ", ptx_text(kernel, line.ptx_line), '\n');
  char mask[16];
  std::snprintf(mask, sizeof(mask), "0x%08x", w.mask);
  text += cat("lanes          ", mask, '\n');
  for (const int index : kernel.debug->live[static_cast<size_t>(i - kernel.code.data())]) {
    const DebugTable::Register& r = kernel.debug->registers[static_cast<size_t>(index)];
    text += cat(r.name, std::string(r.name.size() < 14 ? 15 - r.name.size() : 1, ' '), register_text(w, r), '\n');
  }
  std::fputs(text.c_str(), stderr);
}

}  // namespace emulator::ptx
