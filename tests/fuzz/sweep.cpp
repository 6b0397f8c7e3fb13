// SPDX-License-Identifier: Apache-2.0
// Input: which file of weft-sweep (a sweep in YAML, sweep.json or point.json of a sweep's folder, one flag), the file.
#include "apps/weft_sweep/sweep.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;
using namespace weft::weft_sweep;

namespace {

constexpr const char* kName = "sweep.json";

void draw(const SweepFile& sweep) {
  bool all_listed = true;
  for (const Parameter& parameter : sweep.parameters)
    all_listed = all_listed && parameter.kind == Parameter::Kind::values;
  // A file may request 100,000 points; a few suffice.
  const std::vector<Point> points =
      all_listed && sweep.method == "grid" ? grid(sweep.parameters) : random_points(sweep.parameters, 8, 1);
  for (size_t i = 0; i < points.size() && i < 8; ++i)
    if (const std::string name = name_of(points[i]); name.empty() || name.find('/') != std::string::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  const int kind = input.byte() % 4;
  const std::vector<uint8_t> bytes = input.rest();
  fuzz::expect_value_or_error([&] {
    if (kind == 0) draw(read_sweep_file(folder.write("sweep.yaml", bytes)));
    if (kind == 1) {
      folder.write(kName, bytes);
      const Sweep sweep = Sweep::load(folder.path());
      sweep.save();
      const Sweep again = Sweep::load(folder.path());
      if (again.points != sweep.points || again.command != sweep.command) std::abort();
      for (const Point& point : sweep.points) {
        const auto below = sweep.folder_of(point).lexically_relative(folder.path());
        if (below.has_parent_path() || below == "..") std::abort();
        fuzz::expect_value_or_error([&] { static_cast<void>(sweep.command_of(point)); });
      }
    }
    if (kind == 2) {
      folder.write("point.json", bytes);
      const PointResult result = load_result(folder.path());
      save_result(folder.path(), {}, result);
      if (load_result(folder.path()).state != result.state) std::abort();
    }
    if (kind == 3) {
      SweepFile sweep;
      sweep.method = "random";
      sweep.parameters = {parse_parameter({bytes.begin(), bytes.end()})};
      draw(sweep);
    }
  });
  return 0;
}
