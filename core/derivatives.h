// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/tensor.h"

/// Derivatives as tensors, of any order: PyTorch's torch.autograd.grad() and torch.autograd.functional.
namespace weft::autograd {

struct GradOptions {
  bool create_graph = false;              ///< the gradients have a history, so that they can be differentiated
  std::vector<Tensor> grad_outputs = {};  ///< one per output; may be left out for one element
  std::optional<bool> retain_graph = {};  ///< another backward may come; as create_graph unless given
  bool allow_unused = false;              ///< an undefined tensor for an input that no output depends on
};

/// The gradient of sum_i <grad_outputs[i], outputs[i]> with respect to each input: a leaf, or what the outputs were
/// computed from. No grad() is written, and accumulated hooks do not run; hooks of register_hook() do. Only what leads
/// to an input is gone through. Errors: an input that needs no gradient, or, without allow_unused, has no part in the
/// outputs; with create_graph, an op without a second derivative, which is named; checkpoint() on the way.
///   const Tensor dx = autograd::grad({y}, {x}, {.create_graph = true})[0];
///   mean(square(norm(dx, {1}) - 1)).backward();
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {});

// Derivatives of functions. The results have a history with create_graph only; it goes back beyond x then. Errors: f(x)
// does not depend on x; those of grad().

using Function = std::function<Tensor(const Tensor&)>;

struct DerivativeOptions {
  bool create_graph = false;  ///< the results can be differentiated
};

/// f(x) and v^T J, where J = df/dx: one backward. v has the sizes of f(x).
std::pair<Tensor, Tensor> vjp(const Function& f, const Tensor& x, const Tensor& v, DerivativeOptions options = {});

/// f(x) and J v: the derivative along v, which has the sizes of x. Two backwards (Townsend 2017).
std::pair<Tensor, Tensor> jvp(const Function& f, const Tensor& x, const Tensor& v, DerivativeOptions options = {});

/// J: the sizes of f(x), then those of x. A backward per element of f(x).
Tensor jacobian(const Function& f, const Tensor& x, DerivativeOptions options = {});

/// The second derivatives of a function whose result has one element: the sizes of x twice. A backward per element of
/// x.
Tensor hessian(const Function& f, const Tensor& x, DerivativeOptions options = {});

/// f(x) and the product of its Hessian with v, which has the sizes of x: two backwards (Pearlmutter 1994).
std::pair<Tensor, Tensor> hvp(const Function& f, const Tensor& x, const Tensor& v, DerivativeOptions options = {});

}  // namespace weft::autograd
