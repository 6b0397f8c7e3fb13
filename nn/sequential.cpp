// SPDX-License-Identifier: Apache-2.0
#include "nn/sequential.h"

#include <algorithm>
#include <typeinfo>

#include "nn/batch_norm.h"

namespace weft::nn {
namespace {

/// A child of exactly this type, or nullptr.
template <class T>
const T* as(const std::shared_ptr<Module>& child) {
  const Module& module = *child;
  return typeid(module) == typeid(T) ? static_cast<const T*>(&module) : nullptr;
}

/// Whether `module` is `wanted`, or a Sequential that has it somewhere below.
bool contains(const Module& module, const Sequential& wanted) {
  if (&module == &wanted) return true;
  const auto* const row = dynamic_cast<const Sequential*>(&module);
  return row && std::ranges::any_of(row->children, [&](const auto& child) { return child && contains(*child, wanted); });
}

}  // namespace

Sequential::Sequential(std::vector<std::shared_ptr<Module>> modules) {
  for (std::shared_ptr<Module>& module : modules) add(std::move(module));
}

void Sequential::add(std::shared_ptr<Module> child) {
  WEFT_CHECK(child, "Sequential: expected a module, got null at position ", children.size());
  WEFT_CHECK(!contains(*child, *this), "Sequential: expected another module, got itself, or one that contains it, at ",
             "position ", children.size());
  children.push_back(std::move(child));
}

Tensor Sequential::forward(const Tensor& x) const {
  Tensor y = x;
  for (size_t i = 0; i < children.size(); ++i) {
    const auto* const conv = as<Conv2d>(children[i]);
    const auto* const norm = conv && i + 1 < children.size() ? as<BatchNorm2d>(children[i + 1]) : nullptr;
    if (norm) {
      y = conv_bn(*conv, *norm, y);
      ++i;
    } else {
      y = (*children[i])(y);
    }
  }
  return y;
}

void Sequential::fields(Visitor& v) {
  for (size_t i = 0; i < children.size(); ++i) v(std::to_string(i), children[i]);
}

}  // namespace weft::nn
