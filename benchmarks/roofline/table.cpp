// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/roofline/table.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "benchmarks/roofline/chip.h"
#include "benchmarks/roofline/steps.h"

namespace weft::benchmarks {
namespace {

using Json = nlohmann::ordered_json;

/// One line: a call, or the sum of several.
struct Line {
  std::string kernel, shapes;
  int64_t count = 0;
  double bytes = 0, flop = 0, arithmetic = 0;
  double seconds[std::size(kChips)] = {}, measured[std::size(kChips)] = {};  // times of a call, or of all
  std::string bound = "-";                                                   // on the last chip but one, H200

  /// Operations per byte, of products or of elementwise work: the parts of the floor.
  double intensity() const { return bytes > 0 ? (flop + arithmetic) / bytes : 0; }

  void add(const Line& call, double times) {
    count += call.count;
    bytes += times * call.bytes;
    flop += times * call.flop;
    arithmetic += times * call.arithmetic;
    for (size_t i = 0; i < std::size(kChips); ++i) {
      seconds[i] += times * call.seconds[i];
      measured[i] += times * call.measured[i];
    }
  }
};

constexpr size_t kBoundOf = 2;  // the chip whose bound is told
static_assert(kChips[kBoundOf].name == "H200");

Line line_of(const CountedCall& call) {
  Line line{call.kernel,    call.shapes,         call.count, static_cast<double>(call.cost.bytes),
            call.cost.flop, call.cost.arithmetic};
  for (size_t i = 0; i < std::size(kChips); ++i) {
    line.seconds[i] = floor_of(call.cost, kChips[i], Ceiling::data_sheet).seconds;
    line.measured[i] = floor_of(call.cost, kChips[i], Ceiling::measured).seconds;
  }
  line.bound = name(floor_of(call.cost, kChips[kBoundOf], Ceiling::data_sheet).bound);
  return line;
}

void print_header() {
  std::printf("step\tkernel\tshapes\tcalls\tMB\tGFLOP\tflop/byte\tbound");
  for (const Chip& chip : kChips) std::printf("\t%s us", chip.name.data());
  for (const Chip& chip : kChips) std::printf("\t%s measured us", chip.name.data());
  std::printf("\n");
}

void print(const std::string& step, const Line& line) {
  std::printf("%s\t%s\t%s\t%lld\t%.4g\t%.4g\t%.3g\t%s", step.c_str(), line.kernel.c_str(), line.shapes.c_str(),
              static_cast<long long>(line.count), line.bytes / 1e6, line.flop / 1e9, line.intensity(),
              line.bound.c_str());
  for (const double seconds : line.seconds) std::printf("\t%.4g", seconds * 1e6);
  for (const double seconds : line.measured) std::printf("\t%.4g", seconds * 1e6);
  std::printf("\n");
}

Json json_of(const Line& line) {
  Json floors = Json::object();
  for (size_t i = 0; i < std::size(kChips); ++i)
    floors[std::string(kChips[i].name)] = {{"data_sheet_us", line.seconds[i] * 1e6},
                                           {"measured_us", line.measured[i] * 1e6}};
  return {
      {"kernel", line.kernel}, {"shapes", line.shapes},         {"calls", line.count}, {"bytes", line.bytes},
      {"flop", line.flop},     {"arithmetic", line.arithmetic}, {"bound", line.bound}, {"intensity", line.intensity()},
      {"floor", floors}};
}

Json json_of(const Chip& chip) {
  return {{"name", chip.name},
          {"bandwidth", chip.bandwidth},
          {"bf16", chip.bf16},
          {"f32", chip.f32},
          {"measured_bandwidth", chip.measured_bandwidth},
          {"measured_bf16", chip.measured_bf16}};
}

/// The lines of one step: its calls, its kernels' sums, its own sum.
std::vector<Line> lines_of(const std::string& step, const std::vector<CountedCall>& calls, const std::regex& wanted) {
  std::vector<Line> lines, sums;
  Line total{.kernel = "all", .shapes = "all"};
  for (const CountedCall& call : calls) {
    if (!std::regex_search(step + '/' + call.kernel, wanted)) continue;
    const Line line = line_of(call);
    lines.push_back(line);
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const Line& s) { return s.kernel == line.kernel; });
    if (sum == sums.end()) sum = sums.insert(sum, Line{.kernel = line.kernel, .shapes = "all"});
    sum->add(line, static_cast<double>(line.count));
    total.add(line, static_cast<double>(line.count));
  }
  if (lines.size() < 2) return lines;
  std::stable_sort(sums.begin(), sums.end(),
                   [](const Line& a, const Line& b) { return a.seconds[kBoundOf] > b.seconds[kBoundOf]; });
  lines.insert(lines.end(), sums.begin(), sums.end());
  lines.push_back(total);
  return lines;
}

}  // namespace

int print_roofline(const bench::Setting& setting, const std::regex& wanted, bool list) {
  Json json = {{"chips", Json::array()}, {"lines", Json::array()}};
  for (const Chip& chip : kChips) json["chips"].push_back(json_of(chip));
  bool any = false;
  for (const CountedStep& step : roofline_steps(setting.tiny)) {
    const std::vector<Line> lines = lines_of(step.name, count_calls(step), wanted);
    if (!lines.empty() && !any && !list) print_header();
    any = any || !lines.empty();
    for (const Line& line : lines) {
      if (list) {
        std::printf("%s/%s\t%s\n", step.name.c_str(), line.kernel.c_str(), line.shapes.c_str());
        continue;
      }
      print(step.name, line);
      Json entry = {{"step", step.name}};
      entry.update(json_of(line));
      json["lines"].push_back(std::move(entry));
    }
  }
  if (!any) {
    std::cerr << "bench: no kernel of the suite roofline matches. --list prints them all\n";
    return 1;
  }
  if (list || setting.json.empty()) return 0;
  std::ofstream file(setting.json);
  file << json.dump(1) << '\n';
  if (file.close(); file) return 0;
  std::cerr << "bench: --json: cannot write " << setting.json << '\n';
  return 1;
}

}  // namespace weft::benchmarks
