// SPDX-License-Identifier: Apache-2.0
#include "nn/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <typeinfo>
#include <unordered_set>

#include "core/autograd.h"

namespace weft::nn {
namespace {

/// Each tensor once, under its first name.
struct Distinct : Visitor {
  std::vector<NamedTensor> found;
  std::unordered_set<const TensorImpl*> seen;
  std::unordered_set<std::string> paths;
  void add(const std::string& path, const Tensor& tensor) {
    if (!seen.insert(tensor.impl()).second) return;
    WEFT_CHECK(paths.insert(path).second, "module: expected a name for each tensor, got '", path,
               "' for two. Look at fields()");
    found.push_back({path, tensor});
  }
};

struct Parameters : Distinct {
  void parameter(const std::string& path, Tensor& tensor, Layout) override { add(path, tensor); }
};

struct Names : Visitor {
  std::vector<NamedTensor> found;
  void parameter(const std::string& path, Tensor& tensor, Layout) override { found.push_back({path, tensor}); }
};

struct Buffers : Distinct {
  void buffer_at(const std::string& path, Tensor& tensor) override { add(path, tensor); }
};

struct Modules : Visitor {
  std::vector<std::pair<std::string, Module*>> found;
  void enter(const std::string& path, Module& child) override { found.emplace_back(path, &child); }
};

/// Replaces the data of every parameter and buffer by `convert(data)`, and gradients likewise.
struct Convert : Visitor {
  explicit Convert(std::function<Tensor(const Tensor&)> function) : convert(std::move(function)) {}
  std::function<Tensor(const Tensor&)> convert;

  void change(Tensor& tensor) const {
    const NoGrad no_grad;
    const Tensor data = tensor.detach();
    const Tensor changed = convert(data);
    if (changed.is_same(data)) return;
    tensor.set_data(changed);
    if (tensor.has_gradient())
      tensor.set_grad(convert(tensor.grad()).to(tensor.dtype()));
    else
      tensor.set_grad({});
  }
  void parameter(const std::string&, Tensor& tensor, Layout) override { change(tensor); }
  void buffer_at(const std::string&, Tensor& tensor) override { change(tensor); }
};

}  // namespace

Tensor Module::forward(const Tensor&) const {
  fail(kind(),
       ": has no forward of one tensor. Declare `Tensor forward(const Tensor& x) const override`, derive from ModuleOf "
       "for "
       "more inputs, or call the forward that it declares");
}

std::string Module::kind() const {
  const char* mangled = typeid(*this).name();
  int status = 0;
  char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : mangled;
  std::free(text);
  const size_t colon = result.rfind(':');
  return colon == std::string::npos ? result : result.substr(colon + 1);
}

Tensor Module::operator()(const Tensor& x) const {
  if (hooks_.empty()) return forward(x);
  return with_hooks(x, [&] { return forward(x); });
}

Tensor Module::with_hooks(const Tensor& x, const std::function<Tensor()>& function) const {
  for (const Hooks& hooks : hooks_)
    if (hooks.before) hooks.before(*this, x);
  Tensor y = function();
  for (const Hooks& hooks : hooks_) {
    if (!hooks.after) continue;
    const Tensor replaced = hooks.after(*this, x, y);
    if (replaced.defined()) y = replaced;
  }
  return y;
}

int Module::register_hooks(Before before, After after, Watch watch) {
  hooks_.push_back({next_hooks_, std::move(before), std::move(after), watch});
  return next_hooks_++;
}

void Module::remove_hooks(int number) {
  std::erase_if(hooks_, [number](const Hooks& hooks) { return hooks.number == number; });
}

bool Module::watches_tensors() const {
  return std::any_of(hooks_.begin(), hooks_.end(), [](const Hooks& hooks) { return hooks.watch == Watch::tensors; });
}

void Module::to(Device device) {
  Convert convert([device](const Tensor& data) { return data.to(device); });
  fields(convert);
}

void Module::to(DType dtype) {
  WEFT_CHECK(is_floating(dtype), "to: expected a floating dtype, got ", dtype);
  Convert convert([dtype](const Tensor& data) { return data.is_floating() ? data.to(dtype) : data; });
  fields(convert);
}

Device Module::device() {
  const std::vector<NamedTensor> all = parameters();
  return all.empty() ? Device{} : all.front().tensor.device();
}

std::vector<NamedTensor> Module::parameters() {
  Parameters visitor;
  fields(visitor);
  return std::move(visitor.found);
}

std::vector<NamedTensor> Module::parameter_names() {
  Names visitor;
  fields(visitor);
  return std::move(visitor.found);
}

std::vector<NamedTensor> Module::buffers() {
  Buffers visitor;
  fields(visitor);
  return std::move(visitor.found);
}

std::vector<std::pair<std::string, Module*>> Module::modules() {
  Modules visitor;
  visitor.found.emplace_back("", this);
  fields(visitor);
  return std::move(visitor.found);
}

void Module::train(bool training) {
  for (const auto& [name, module] : modules()) module->training_ = training;
}

void Module::zero_grad() {
  for (const NamedTensor& parameter : parameters()) parameter.tensor.zero_grad();
}

void Module::apply(const std::function<void(Module&)>& function) {
  WEFT_CHECK(function, "apply: expected a function of a module, got none");
  const auto all = modules();
  for (auto module = all.rbegin(); module != all.rend(); ++module) function(*module->second);
}

int64_t parameter_count(Module& module) {
  int64_t count = 0;
  for (const NamedTensor& parameter : module.parameters()) count += parameter.tensor.numel();
  return count;
}

}  // namespace weft::nn
