// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/autograd.h"
#include "core/choose_device.h"
#include "core/derivatives.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/tensor.h"

namespace weft::tests {

using Tensors = std::vector<Tensor>;

struct Numbers : std::vector<double> {
  int64_t at(size_t i) const { return static_cast<int64_t>(vector::at(i)); }
  double real(size_t i) const { return vector::at(i); }
  bool flag(size_t i) const { return at(i) != 0; }
  /// The numbers from `first` on, at most `count`.
  std::vector<int64_t> from(size_t first, size_t count = 99) const {
    std::vector<int64_t> all;
    for (size_t i = first; i < size() && i < first + count; ++i) all.push_back(at(i));
    return all;
  }
};

inline Shape shape_of(const std::vector<int64_t>& sizes) { return Shape(std::span(sizes)); }

/// A count, then as many of them.
template <class T, class List = std::vector<T>>
List counted(std::istream& in) {
  size_t count = 0;
  in >> count;
  List all;
  all.resize(count);
  for (T& one : all) in >> one;
  return all;
}

template <class Name>
void print(const char* what, const Name& name, const Tensor& x) {
  std::cout << what << ' ' << name;
  if (!x.defined()) {
    std::cout << " none\n";
    return;
  }
  std::cout << ' ' << x.dim();
  for (int d = 0; d < x.dim(); ++d) std::cout << ' ' << x.size(d);
  for (const double value : x.to_vector<double>()) std::cout << ' ' << value;
  std::cout << '\n';
}

using Op = Tensor (*)(const Tensors&, const Numbers&);
#define WEFT_PROGRAM_OP(name, ...)                                                                   \
  {                                                                                                  \
    name, [](const Tensors& t, const Numbers& n) -> Tensor { return (void)t, (void)n, __VA_ARGS__; } \
  }

/// A program that a script next to PyTorch draws and this test runs. A line is an op, the number of its result, then
/// tensors and numbers, each list with its length first; the result is printed. `leaf`,
/// `constant` and `integers` have sizes and values instead; `backward` has a tensor and its gradient, and prints the
/// gradients of the leaves since the last one; `backward 1`: those of the sum of the squared gradients.
class RandomProgram {
 public:
  RandomProgram(Device device, DType dtype, const std::map<std::string, Op>& ops)
      : device_(device), dtype_(dtype), ops_(ops) {}
  virtual ~RandomProgram() = default;
  RandomProgram(const RandomProgram&) = delete;
  RandomProgram& operator=(const RandomProgram&) = delete;

  void run(const std::string& line) {
    std::istringstream in(line);
    std::string op;
    int number = 0;
    in >> op >> number;
    if (op == "backward") {
      const Tensors of = tensors(in);
      const Tensor y = number == 1 ? squared_gradients(of.at(0), of.at(1)) : of.at(0);
      if (y.requires_grad()) y.backward(number == 1 ? Tensor() : of.at(1));
      for (const int leaf : leaves_) print("gradient", leaf, tensors_.at(leaf).grad());
      leaves_.clear();
    } else if (op == "integers") {
      const Shape sizes = shape_of(counted<int64_t>(in));
      tensors_[number] = Tensor::from(counted<int64_t>(in), sizes, device_);
    } else if (op == "leaf" || op == "constant") {
      const Shape sizes = shape_of(counted<int64_t>(in));
      Tensor& result = tensors_[number] = Tensor::from(counted<double>(in), sizes).to(dtype_).to(device_);
      if (op == "leaf") {
        result.requires_grad_();
        leaves_.push_back(number);
      }
    } else if (const auto known = ops_.find(op); known != ops_.end()) {
      const Tensors of = tensors(in);
      keep(number, known->second(of, counted<double, Numbers>(in)));
    } else {
      run_other(op, number, in);
    }
  }

 protected:
  /// A line whose op is not in the table.
  virtual void run_other(const std::string& op, int, std::istream&) { fail("no op '", op, "'"); }
  Tensors tensors(std::istream& in) const {
    Tensors all;
    for (const int number : counted<int>(in)) all.push_back(tensors_.at(number));
    return all;
  }
  void keep(int number, const Tensor& result) {
    tensors_[number] = result;
    print("value", number, result);
  }

  Device device_;
  DType dtype_;

 private:
  Tensor squared_gradients(const Tensor& y, const Tensor& dy) const {
    Tensors leaves;
    for (const int leaf : leaves_) leaves.push_back(tensors_.at(leaf));
    Tensor total = Tensor::zeros({}, dtype_, device_);
    for (const Tensor& gradient :
         autograd::grad({y}, leaves, {.create_graph = true, .grad_outputs = {dy}, .allow_unused = true}))
      if (gradient.defined()) total = add(total, sum(square(gradient)));
    return total;
  }

  const std::map<std::string, Op>& ops_;
  std::map<int, Tensor> tensors_;
  std::vector<int> leaves_;
};

/// main() of `NAME DEVICE f32|f64 < PROGRAMS`. `program` begins the next one; the rest of one that failed is left out.
template <class Program>
int run_random_programs(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " DEVICE f32|f64 < PROGRAMS\n";
    return 2;
  }
  const Device device = choose_device(argv[1]);
  const DType dtype = std::string(argv[2]) == "f32" ? DType::f32 : DType::f64;
  std::unique_ptr<Program> program;
  std::cout << std::setprecision(17);
  for (std::string line; std::getline(std::cin, line);) {
    if (line.starts_with("program")) {
      std::cout << line << '\n';
      program = std::make_unique<Program>(device, dtype);
    } else if (program) {
      try {
        program->run(line);
      } catch (const std::exception& error) {
        std::cout << "error " << line.substr(0, 60) << ": " << error.what() << '\n';
        program = nullptr;
      }
    }
  }
  return 0;
}

}  // namespace weft::tests
