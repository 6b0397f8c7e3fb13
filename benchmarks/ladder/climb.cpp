// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/ladder/climb.h"

#include <cmath>
#include <cstring>
#include <iomanip>
#include <memory>
#include <random>
#include <sstream>

#include "benchmarks/ladder/counts.h"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/engine.h"
#include "kernels/runtime/runtime.h"

namespace weft::benchmarks {
namespace {

using kernels::Queue, kernels::View, kernels::Workspace;
using kernels::ladder::Ladder, kernels::ladder::Problem, kernels::ladder::Step;

int64_t count_of(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return n;
}

/// A dense array on the device.
struct Array {
  View view;
  Workspace memory;

  Array(const Queue& queue, DType dtype, const std::vector<int64_t>& sizes)
      : view{nullptr, dtype, static_cast<int>(sizes.size()), {}, {}},
        memory(queue, static_cast<size_t>(count_of(sizes)) * size_of(dtype), "ladder") {
    view.data = memory.data();
    int64_t stride = 1;
    for (int d = view.rank - 1; d >= 0; stride *= view.sizes[d], --d) {
      view.sizes[d] = sizes[static_cast<size_t>(d)];
      view.strides[d] = stride;
    }
  }
};

/// Random inputs, the same in every run, and an output.
class Data {
 public:
  Data(const Queue& queue, const Problem& problem) : queue_(queue), y_(queue, problem.dtype, problem.output) {
    std::mt19937 numbers(1);
    for (const auto& sizes : problem.inputs) {
      arrays_.push_back(std::make_unique<Array>(queue, problem.dtype, sizes));
      views_.push_back(arrays_.back()->view);
      fill(views_.back(), numbers);
    }
  }

  void run(const Step& step) const { step.run(queue_, y_.view, views_); }

  /// The output, after everything was run; then it is poisoned.
  std::vector<float> take() {
    kernels::Runtime& runtime = kernels::runtime(queue_.device.kind);
    const size_t n = static_cast<size_t>(y_.view.numel()), bytes = n * size_of(y_.view.dtype);
    std::vector<char> raw(bytes);
    runtime.synchronize_device(0);
    runtime.copy(0, raw.data(), y_.view.data, bytes, nullptr);
    runtime.fill_bytes(0, y_.view.data, 0xff, bytes, nullptr);
    runtime.synchronize_device(0);
    std::vector<float> values(n);
    with_dtype<float, bf16>(y_.view.dtype, "ladder", [&]<class T>() {
      for (size_t i = 0; i < n; ++i) {
        T value;
        std::memcpy(&value, raw.data() + i * sizeof(T), sizeof(T));
        values[i] = static_cast<float>(value);
      }
    });
    return values;
  }

 private:
  void fill(const View& view, std::mt19937& numbers) const {
    // A long sum of both signs may come to almost nothing, of which rounding is a large part.
    std::uniform_real_distribution<float> uniform(view.rank == 1 ? 0 : -1, 1);
    const size_t n = static_cast<size_t>(view.numel());
    with_dtype<float, bf16>(view.dtype, "ladder", [&]<class T>() {
      std::vector<T> values(n);
      for (T& value : values) value = T(uniform(numbers));
      kernels::runtime(queue_.device.kind).copy(0, view.data, values.data(), n * sizeof(T), nullptr);
      kernels::runtime(queue_.device.kind).synchronize_device(0);
    });
  }

  Queue queue_;
  Array y_;
  std::vector<std::unique_ptr<Array>> arrays_;
  std::vector<View> views_;
};

/// |a - b| / |b|
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - double{b[i]}, 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

using Row = std::vector<std::string>;

void print(std::ostream& out, const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  for (const Row& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      const bool text = c == 0 || c + 1 == row.size();
      out << (c ? "  " : "") << (text ? std::left : std::right)
          << std::setw(c + 1 == row.size() ? 0 : static_cast<int>(widths[c])) << row[c];
    }
    out << '\n';
  }
}

std::string number(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}
/// 12345678 as `12,345,678`.
std::string grouped(int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}
std::string percent(double part, double whole) { return whole > 0 ? str(number(100 * part / whole, 0), "%") : "-"; }

double seconds_of(const Step& step, const Climb& climb, const Data& data) {
  const auto wait = [&] { kernels::runtime(climb.device.kind).synchronize_device(climb.device.index); };
  return bench::seconds_per_step({[&] { data.run(step); }, 1, {}, wait}, climb.timing);
}

/// The time of the last step's call when NVIDIA's library computes it.
double vendor_seconds(const Step& last, const Climb& climb, const Data& data) {
  const kernels::EngineGuard guard(kernels::Engine::vendor);
  return seconds_of(last, climb, data);
}

std::vector<Row> timed(const Ladder& ladder, const std::vector<Step>& steps, const Problem& problem, const Climb& climb,
                       const Data& data) {
  std::vector<double> seconds;
  for (const Step& step : steps) seconds.push_back(seconds_of(step, climb, data));
  double vendor = 0;
  std::string why;
  if (ladder.vendor != nullptr) {
    try {
      vendor = vendor_seconds(steps.back(), climb, data);
    } catch (const Error& error) {
      why = error.what();
    }
  }
  const bool flops = problem.flop > 0;
  const auto row = [&](const std::string& title, double one, const std::string& idea) {
    const double rate = flops ? problem.flop / one / 1e12 : problem.bytes() / one / 1e9;
    return Row{
        title, number(one * 1e3, 4), number(rate, flops ? 2 : 0), percent(seconds.back(), one), percent(vendor, one),
        idea};
  };
  std::vector<Row> rows{{"step", "ms", flops ? "TFLOP/s" : "GB/s", "of the last", "of the vendor's", "idea"}};
  for (size_t i = 0; i < steps.size(); ++i) rows.push_back(row(steps[i].title(), seconds[i], steps[i].idea));
  if (vendor > 0) rows.push_back(row(ladder.vendor, vendor, "NVIDIA's library, for comparison"));
  if (ladder.vendor != nullptr && vendor == 0) rows.push_back({ladder.vendor, "-", "-", "-", "-", why});
  return rows;
}

std::vector<Row> counted(const std::vector<Step>& steps, const Data& data) {
  std::vector<Row> rows{{"step", "loads", "load KiB", "used", "stores", "store KiB", "used", "TMA KiB", "shared",
                         "wavefronts", "conflicts", "barriers", "idea"}};
  const auto used = [](const weft_emulator_global_counts& g) {
    return percent(static_cast<double>(g.bytes), 32 * static_cast<double>(g.sectors));
  };
  const auto kib = [](int64_t bytes) { return number(static_cast<double>(bytes) / 1024, 0); };
  for (const Step& step : steps) {
    const weft_emulator_counts c = count([&] { data.run(step); });
    rows.push_back({step.title(), grouped(c.loads.requests), kib(32 * c.loads.sectors), used(c.loads),
                    grouped(c.stores.requests), kib(32 * c.stores.sectors), used(c.stores), kib(c.bulk_bytes),
                    grouped(c.shared.requests), grouped(c.shared.wavefronts), grouped(c.shared.conflicts),
                    grouped(c.barriers), step.idea});
  }
  return rows;
}

}  // namespace

void print_list(std::ostream& out) {
  std::vector<Row> rows{{"ladder", "sizes", "what its steps compute"}};
  for (const Ladder& ladder : kernels::ladder::all()) rows.push_back({ladder.name, ladder.letters, ladder.formula});
  print(out, rows);
}

void print_table(std::ostream& out, const Ladder& ladder, const Climb& climb) {
  WEFT_CHECK(climb.device.kind == DeviceKind::cuda, "ladder: expected the device cuda, got ", climb.device);
  WEFT_CHECK(kernels::runtime(climb.device.kind).device_count() > climb.device.index, "ladder: there is no device ",
             climb.device);
  const auto& sizes = !climb.sizes.empty() ? climb.sizes : can_count() ? ladder.counted : ladder.timed;
  WEFT_CHECK(sizes.size() == ladder.timed.size(), "ladder: ", ladder.name, " has the sizes ", ladder.letters, ", got ",
             sizes.size(), " numbers");
  for (const int64_t size : sizes) WEFT_CHECK(size > 0, "ladder: expected positive sizes, got ", size);

  const Problem problem = ladder.problem(sizes);
  const Queue queue{climb.device, nullptr};
  const kernels::EngineGuard own(kernels::Engine::own);
  std::vector<Step> steps = kernels::ladder::steps(ladder);
  std::string left_out;
  std::erase_if(steps, [&](const Step& step) {
    if (!step.available(queue)) left_out += str(left_out.empty() ? "" : ", ", step.title());
    return !step.available(queue);
  });
  Data data(queue, problem);
  data.run(steps.back());
  const std::vector<float> want = data.take();
  for (const Step& step : steps) {
    data.run(step);
    const double error = distance(data.take(), want);
    WEFT_CHECK(error < (problem.dtype == DType::bf16 ? 2e-2 : 1e-4), step.name, ": its result is ", error,
               " from the last step's");
  }

  out << ladder.name << ": " << ladder.formula << "; " << ladder.letters << " =";
  for (const int64_t size : sizes) out << ' ' << size;
  out << ", on " << kernels::runtime(climb.device.kind).describe(climb.device.index) << '\n';
  print(out, can_count() ? counted(steps, data) : timed(ladder, steps, problem, climb, data));
  if (!left_out.empty()) out << "Not for this device: " << left_out << '\n';
}

}  // namespace weft::benchmarks
