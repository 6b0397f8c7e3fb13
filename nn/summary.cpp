// SPDX-License-Identifier: Apache-2.0
#include "nn/summary.h"

#include <algorithm>
#include <array>

#include "core/autograd.h"

namespace weft::nn {
namespace {

struct Row {
  std::string path, kind, output, parameters, flops;
};

/// 1234567 as 1,234,567.
std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (int64_t at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

/// Columns padded to their widest cell; numbers to the right.
std::string table(const std::vector<Row>& rows) {
  std::array<size_t, 5> width{};
  const auto cells = [](const Row& row) {
    return std::array{&row.path, &row.kind, &row.output, &row.parameters, &row.flops};
  };
  for (const Row& row : rows)
    for (size_t c = 0; c < 5; ++c) width[c] = std::max(width[c], cells(row)[c]->size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t c = 0; c < 5; ++c) {
      const std::string padding(width[c] - cells(row)[c]->size(), ' ');
      line += (c ? "  " : "") + (c < 3 ? *cells(row)[c] + padding : padding + *cells(row)[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

/// Records a row for every call of a module without children, as long as it lives.
class Recorder {
 public:
  explicit Recorder(Module& model) {
    for (const auto& [path, module] : model.modules()) {
      training_.emplace_back(module, module->is_training());
      if (module->modules().size() > 1) continue;
      const int number = module->register_hooks(
          {}, [this, path = path, module = module](const Module&, const Tensor& x, const Tensor& y) {
            add(path, *module, x, y);
            return Tensor();
          });
      hooks_.emplace_back(module, number);
    }
    model.eval();
  }
  ~Recorder() {
    for (const auto& [module, number] : hooks_) module->remove_hooks(number);
    for (const auto& [module, training] : training_) module->train(training);  // parents come first
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  std::vector<Row> rows{{"layer", "kind", "output", "parameters", "FLOPs"}};
  int64_t total_flops = 0;

 private:
  void add(const std::string& path, Module& module, const Tensor& x, const Tensor& y) {
    const int64_t flops = module.flops(x.sizes(), y.sizes());
    total_flops += flops;
    rows.push_back({path, module.kind(), str(y.sizes()), grouped(parameter_count(module)), grouped(flops)});
  }

  std::vector<std::pair<Module*, int>> hooks_;
  std::vector<std::pair<Module*, bool>> training_;
};

}  // namespace

std::string summary(Module& model, const Shape& input) {
  const NoGrad no_grad;
  Recorder recorder(model);
  const Tensor y = model(Tensor::zeros(input, DType::f32, model.device()));
  std::vector<Row> rows = recorder.rows;
  rows.push_back(
      {"total", model.kind(), str(y.sizes()), grouped(parameter_count(model)), grouped(recorder.total_flops)});
  return table(rows);
}

}  // namespace weft::nn
