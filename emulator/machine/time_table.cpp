// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/time_table.h"

#include <charconv>
#include <cstdio>
#include <utility>

#include "emulator/machine/fault.h"

namespace emulator::time_model {

namespace {

constexpr std::pair<std::string_view, double Work::*> kFields[] = {
    {"blocks", &Work::blocks},
    {"counted_blocks", &Work::counted_blocks},
    {"warps_per_block", &Work::warps_per_block},
    {"cluster_blocks", &Work::cluster_blocks},
    {"resident_blocks", &Work::resident_blocks},
    {"issued", &Work::issued},
    {"fp32", &Work::fp32},
    {"integer", &Work::integer},
    {"half", &Work::half},
    {"fp64", &Work::fp64},
    {"mufu", &Work::mufu},
    {"lsu", &Work::lsu},
    {"tensor_wgmma", &Work::tensor_wgmma},
    {"tensor_mma", &Work::tensor_mma},
    {"tensor_f64", &Work::tensor_f64},
    {"wavefronts", &Work::wavefronts},
    {"l2_bytes", &Work::l2_bytes},
    {"dram_bytes", &Work::dram_bytes},
    {"dram_written", &Work::dram_written},
    {"atomics", &Work::atomics},
    {"path", &Work::path},
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.10g", value);
  return text;
}

}  // namespace

std::string to_text(const TableLine& line, const Prediction& prediction) {
  std::string text = cat("kernel=", line.kernel, "\tgpu=", line.gpu, "\tseconds=", number(prediction.seconds),
                         "\tlimit=", name_of(prediction.limit));
  for (const auto& [name, member] : kFields) text += cat('\t', name, '=', number(line.work.*member));
  return text;
}

bool from_text(std::string_view text, TableLine& line) {
  size_t known = 0;
  while (!text.empty()) {
    const size_t tab = text.find('\t');
    const std::string_view field = text.substr(0, tab);
    text = tab == std::string_view::npos ? "" : text.substr(tab + 1);
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view name = field.substr(0, equals), value = field.substr(equals + 1);
    if (name == "kernel") line.kernel = value;
    if (name == "gpu") line.gpu = value;
    for (const auto& [key, member] : kFields)
      if (key == name) {
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), line.work.*member);
        if (error != std::errc{} || end != value.data() + value.size()) return false;
        ++known;
      }
  }
  return known == std::size(kFields) && !line.kernel.empty() && !line.gpu.empty();
}

}  // namespace emulator::time_model
