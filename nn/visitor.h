// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace weft::nn {

class Module;

/// How a parameter lies in memory, where that differs from what files hold.
enum class Layout {
  as_stored,
  ohwi,  ///< a convolution weight [O, R, S, C], or of one or three spatial dimensions: to_file_order() is what files
         ///< hold
};

/// Walks the members of a module in the order in which fields() names them. Each derived visitor overrides the calls
/// that it needs; a path is the names from the root, joined by dots: `layer3.0.conv1.weight`.
class Visitor {
 public:
  virtual ~Visitor() = default;

  /// A parameter: a gradient is required from now on, unless requires_grad_() was ever called, as freezing does.
  /// Undefined tensors (no bias) are passed over.
  void operator()(const std::string& name, Tensor& tensor, Layout layout = Layout::as_stored);
  /// A child module. Errors: it is inside itself.
  void operator()(const std::string& name, Module& child);
  template <std::derived_from<Module> Child>
  void operator()(const std::string& name, const std::shared_ptr<Child>& child) {
    if (child) (*this)(name, *child);
  }
  /// Children in a row, named name.0, name.1, … Errors: a null one.
  template <std::derived_from<Module> Child>
  void operator()(const std::string& name, const std::vector<std::shared_ptr<Child>>& children) {
    for (size_t i = 0; i < children.size(); ++i) {
      const std::string numbered = name + '.' + std::to_string(i);
      WEFT_CHECK(children[i], "module: '", path(numbered), "' is null. Leave it out of its vector");
      (*this)(numbered, *children[i]);
    }
  }
  /// A tensor that belongs to the state and is not trained.
  void buffer(const std::string& name, Tensor& tensor) {
    if (tensor.defined()) buffer_at(path(name), tensor);
  }
  /// A number on the host that files hold as an i64 scalar tensor.
  void counter(const std::string& name, int64_t& value) { counter_at(path(name), value); }

 protected:
  virtual void parameter(const std::string& path, Tensor& tensor, Layout layout);
  virtual void buffer_at(const std::string& path, Tensor& tensor);
  virtual void counter_at(const std::string& path, int64_t& value);
  /// Called with each child before its members are visited.
  virtual void enter(const std::string& path, Module& child);

 private:
  std::string path(const std::string& name) const { return prefix_ + name; }
  std::string prefix_;
  std::vector<const Module*> open_;  // modules whose fields() runs, but for the root
};

}  // namespace weft::nn
