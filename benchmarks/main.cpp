// SPDX-License-Identifier: Apache-2.0
#include "apps/support/device.h"
#include "benchmarks/cases/cases.h"
#include "benchmarks/harness/program.h"

namespace weft::benchmarks {

Work work_on(const Target& target, std::function<void()> step, double amount, std::function<void()> before) {
  return {std::move(step), amount, std::move(before), [device = target.device] { synchronize(device); }};
}

namespace {

Cases make_cases(const bench::Setting& setting) {
  const Target target{support::choose_device(setting.device.empty() ? "cpu" : setting.device), setting.tiny};
  Cases cases;
  add_network_cases(cases, target);
  add_convolution_cases(cases, target);
  add_matmul_cases(cases, target);
  add_norm_cases(cases, target);
  add_elementwise_cases(cases, target);
  add_optimizer_cases(cases, target);
  add_tiny_op_cases(cases, target);
  add_loader_cases(cases, target);
  add_process_cases(cases, target);
  return cases;
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  return bench::run_program(argc, argv, "Measures Weft: one line per case, its name, value and unit.", {"cpu"},
                            weft::benchmarks::make_cases);
}
