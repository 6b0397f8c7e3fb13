// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/cases.h"
#include "benchmarks/harness/program.h"
#include "benchmarks/roofline/table.h"
#include "core/choose_device.h"
#include "core/profile/op_table.h"
#include "core/profile/profiler.h"
#include "kernels/runtime/variants.h"

namespace weft::benchmarks {

Work work_on(const Target& target, std::function<void()> step, double amount, std::function<void()> before) {
  return {std::move(step), amount, std::move(before), [device = target.device] { synchronize(device); }};
}

namespace {

void add_cpu_suite(Cases& cases, const Target& target) {
  add_network_cases(cases, target);
  add_transformer_cases(cases, target);
  add_convolution_cases(cases, target);
  add_matmul_cases(cases, target);
  add_norm_cases(cases, target);
  add_elementwise_cases(cases, target);
  add_optimizer_cases(cases, target);
  add_tiny_op_cases(cases, target);
  add_loader_cases(cases, target);
  add_process_cases(cases, target);
}

void add_gpu_suite(Cases& cases, const Target& target) {
  add_gpu_network_cases(cases, target);
  add_gpu_matmul_cases(cases, target);
  add_gpu_convolution_cases(cases, target);
  add_gpu_norm_cases(cases, target);
  add_gpu_transformer_cases(cases, target);
  add_gpu_transformer_training_cases(cases, target);
  add_gpu_memory_cases(cases, target);
  add_gpu_input_cases(cases, target);
  add_optimizer_cases(cases, target);
  add_tiny_op_cases(cases, target);
}

std::string kernels_of(const std::function<void()>& steps) {
  profile::Profiler profiler;
  steps();
  return profile::op_table(profiler.stop());
}

Cases make_cases(const bench::Setting& setting) {
  const bool gpu = setting.suite == "gpu", engines = setting.suite == "engines", plans = setting.suite == "plans";
  const bool ops = setting.suite == "ops";
  const std::string device = !setting.device.empty() ? setting.device : gpu || engines || plans ? "cuda" : "cpu";
  const Target target{weft::choose_device(device), setting.tiny};
  Cases cases;
  if (setting.suite == "dist") {
    add_collective_cases(cases, target);
    return cases;
  }
  (engines ? add_engine_cases
   : plans ? add_plan_cases
   : ops   ? add_every_op
   : gpu   ? add_gpu_suite
           : add_cpu_suite)(cases, target);
  return cases;
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  return bench::run_program(argc, argv, "Measures Weft: one line per case, its name, value and unit.",
                            {"cpu", "gpu", "ops", "engines", "plans", "dist", "roofline"}, weft::benchmarks::make_cases,
                            {{"roofline", weft::benchmarks::print_roofline}},
                            {.choose = weft::kernels::choose_variants, .table_of = weft::benchmarks::kernels_of});
}
