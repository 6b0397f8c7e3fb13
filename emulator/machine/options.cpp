// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/options.h"

#include <atomic>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <thread>

#include "emulator/machine/fault.h"

namespace emulator {

namespace {

[[noreturn]] void refuse(const std::string& text) {
  std::fprintf(stderr, "weft-emulate: %s\n", text.c_str());
  std::exit(2);
}

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

/// `--gpus` of WEFT_EMULATE_GPUS.
std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name.substr(std::string_view("WEFT_EMULATE_").size()));
  for (char& c : flag) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return flag;
}

uint64_t number(const char* name, uint64_t otherwise, uint64_t least, uint64_t most) {
  const std::string_view text = variable(name);
  if (text.empty()) return otherwise;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    refuse(cat(flag_of(name), " (", name, "): expected a number from ", least, " to ", most, ", got '", text, "'"));
  return value;
}

/// How many of `gpus` the program sees: as in CUDA, CUDA_VISIBLE_DEVICES lists numbers, and ends at the first that no
/// GPU has.
int visible_of(int gpus) {
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!list) return gpus;
  int seen = 0;
  for (std::istringstream text(list); seen < gpus; ++seen) {
    int number = -1;
    if (!(text >> number) || number < 0 || number >= gpus) break;
    text.ignore();  // the comma
  }
  return seen;
}

Options read_options() {
  Options o;
  const std::string_view gpu = variable("WEFT_EMULATE_GPU");
  o.gpu = find_gpu(gpu.empty() ? "h100" : gpu);
  if (!o.gpu) refuse(cat("--gpu (WEFT_EMULATE_GPU): expected one of ", gpu_keys(), ", got '", gpu, "'"));
  o.gpus = static_cast<int>(number("WEFT_EMULATE_GPUS", 1, 0, 64));
  o.gpus = visible_of(o.gpus);
  o.memory_mib = number("WEFT_EMULATE_MEMORY", 0, 1, 1 << 20);
  o.seed = number("WEFT_EMULATE_SEED", 0, 0, ~uint64_t{0});
  o.threads = static_cast<int>(number("WEFT_EMULATE_THREADS", 0, 0, 1024));
  if (o.threads == 0) o.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));

  const std::string_view streams = variable("WEFT_EMULATE_STREAMS");
  if (!streams.empty()) {
    const auto order = parse_streams(streams);
    if (!order)
      refuse(cat("--streams (WEFT_EMULATE_STREAMS): expected inorder, lazy, random, starve:K or queues:N, got '",
                 streams, "'"));
    o.streams = *order;
  }
  if (o.streams.order == StreamOrder::random && o.seed == 0) o.seed = 1;
  o.streams.seed = o.seed;

  std::string_view checks = variable("WEFT_EMULATE_CHECK");
  while (!checks.empty()) {
    const size_t comma = checks.find(',');
    const std::string_view check = checks.substr(0, comma);
    checks = comma == std::string_view::npos ? "" : checks.substr(comma + 1);
    const bool all = check == "all";
    if (!all && check != "races" && check != "uninitialised" && check != "streams" && check != "bounds")
      refuse(cat("--check (WEFT_EMULATE_CHECK): expected races, bounds, uninitialised, streams or all, got '", check,
                 "'"));
    o.check_races |= all || check == "races";
    o.check_uninitialised |= all || check == "uninitialised";
    o.check_streams |= all || check == "streams";  // bounds: always
  }
  o.count = number("WEFT_EMULATE_COUNT", 0, 0, 1) != 0;
  o.profile = variable("WEFT_EMULATE_PROFILE");
  o.break_at = variable("WEFT_EMULATE_BREAK");
  o.time_table = variable("WEFT_EMULATE_TIME_TABLE");
  o.report = variable("WEFT_EMULATE_REPORT");
  o.exit_code = static_cast<int>(number("WEFT_EMULATE_ERROR_EXITCODE", 86, 0, 255));
  o.time_known = variable("WEFT_EMULATE_TIME_KNOWN");
  o.time = number("WEFT_EMULATE_TIME", 0, 0, 1) != 0;
  o.time_waves = static_cast<int>(number("WEFT_EMULATE_TIME_WAVES", 0, 0, 1 << 20));
  return o;
}

std::atomic<uint64_t>& current_seed() {
  static std::atomic<uint64_t> seed{options().seed};
  return seed;
}

}  // namespace

const Options& options() {
  static const Options read = read_options();
  return read;
}

uint64_t seed() { return current_seed(); }
void set_seed(uint64_t seed) { current_seed() = seed; }

}  // namespace emulator
