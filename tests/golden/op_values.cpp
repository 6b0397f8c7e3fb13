// SPDX-License-Identifier: Apache-2.0
// Every case of ops.py: y from the inputs, then the gradients from dy. A case's inputs are its tensors; what to do with
// its options stands in the table below.
#include <algorithm>
#include <functional>
#include <set>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/complex.h"
#include "core/ops/concat.h"
#include "core/ops/einsum.h"
#include "core/ops/fft.h"
#include "core/ops/gather.h"
#include "core/ops/index.h"
#include "core/ops/layers/attention.h"
#include "core/ops/layers/batch_norm.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/conv_transpose2d.h"
#include "core/ops/layers/layer_norm.h"
#include "core/ops/layers/linear.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/patches.h"
#include "core/ops/layers/pool2d.h"
#include "core/ops/layers/rotary.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/linalg.h"
#include "core/ops/matmul.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/sort.h"
#include "core/ops/unary.h"
#include "tests/golden/golden.h"
#include "tests/support/rows.h"

namespace weft::golden {
namespace {

/// One case of the file: leaves made on first use, numbers of the options.
class Case {
 public:
  Case(const File& file, std::string name) : file_(file), name_(std::move(name)) {
    options_ = file[name_ + ".options"].to_vector<double>();
  }
  bool has(const std::string& key) const { return file_.has(name_ + '.' + key); }
  const Tensor& expected(const std::string& key) const { return file_[name_ + '.' + key]; }
  /// An input; undefined where the case has none of this name. A floating one with a gradient in the file is a leaf.
  Tensor operator()(const std::string& key) {
    if (!has(key)) return {};
    Tensor& input = inputs_[key];
    if (!input.defined()) {
      input = expected(key).clone();
      if (has('d' + key)) input.requires_grad_();
    }
    return input;
  }
  double number(size_t i) const { return options_.at(i); }
  int64_t integer(size_t i) const { return static_cast<int64_t>(options_.at(i)); }
  Size2d size(size_t i) const { return {integer(i), integer(i + 1)}; }
  size_t count() const { return options_.size(); }
  const std::map<std::string, Tensor>& inputs() const { return inputs_; }
  const std::string& name() const { return name_; }

 private:
  const File& file_;
  std::string name_;
  std::vector<double> options_;
  std::map<std::string, Tensor> inputs_;
};

using Function = std::function<Tensor(Case&)>;

/// steady() and symmetric() of ops.py.
Tensor steady(const Tensor& x) {
  const int64_t M = x.size(-2), N = x.size(-1), K = std::min(M, N);
  const Tensor d = diag_embed(Tensor::arange(K, x.dtype(), x.device(), 2, 2));
  return 0.2 * x + pad(pad(d, 0, 0, M - K), 1, 0, N - K);
}
Tensor symmetric(const Tensor& x) { return (steady(x) + steady(x).transpose(-1, -2)) / 2; }

/// The parts of z, an input.
ComplexTensor complex_of(Case& c, const std::string& key) { return view_as_complex(c(key)); }

FftOptions line_of(Case& c) { return {.n = c.integer(0), .dim = 1, .norm = static_cast<FftNorm>(c.integer(1))}; }

template <class Transform>
Function of_complex(Transform transform) {
  return [=](Case& c) {
    return transform(complex_of(c, "x"), FftnOptions{.norm = static_cast<FftNorm>(c.integer(0))}).parts();
  };
}
template <class Transform>
Function of_real(Transform transform) {
  return [=](Case& c) {
    return transform(c("x"), FftnOptions{.norm = static_cast<FftNorm>(c.integer(0))}).parts();
  };
}
template <class Transform>
Function to_real(Transform transform) {
  return [=](Case& c) {
    return transform(complex_of(c, "x"), FftnOptions{.norm = static_cast<FftNorm>(c.integer(0))});
  };
}

Tensor complex_values(Case& c) {
  const ComplexTensor a = complex_of(c, "a"), b = complex_of(c, "b");
  switch (c.integer(0)) {
    case 0:
      return (a + b).parts();
    case 1:
      return (a - b).parts();
    case 2:
      return (a * b).parts();
    case 3:
      return (a / b).parts();
    case 4:
      return matmul(a, b).parts();
    case 5:
      return (exp(a) * conj(b)).parts();
    default:
      return stack({abs(a), real(a), imag(b)});
  }
}

Tensor svd_values(Case& c) {
  const auto [u, s, vh] = svd(steady(c("x")));
  return concat({square(u).flatten(), s.flatten(), square(vh).flatten()});
}
Tensor eigh_values(Case& c) {
  const auto [w, v] = eigh(symmetric(c("x")));
  return concat({w.flatten(), square(v).flatten()});
}
Tensor qr_values(Case& c) {
  const auto [q, r] = qr(steady(c("x")));
  return matmul(square(q), square(r)).flatten();
}

template <class Binary>
Function binary(Binary function) {
  return [=](Case& c) { return function(c("a"), c("b")); };
}
Function reduction(Tensor (*reduce)(const Tensor&, const std::vector<int64_t>&, bool)) {
  return [=](Case& c) {
    std::vector<int64_t> dims;
    for (size_t i = 1; i < c.count(); ++i) dims.push_back(c.integer(i));
    return reduce(c("x"), dims, c.integer(0) != 0);
  };
}

Function spread(Tensor (*measure)(const Tensor&, const VarOptions&)) {
  return [=](Case& c) {
    VarOptions options{.correction = c.integer(0), .keep_dims = c.integer(1) != 0};
    for (size_t i = 2; i < c.count(); ++i) options.dims.push_back(c.integer(i));
    return measure(c("x"), options);
  };
}

Pool2dOptions pool_options(const Case& c) {
  return {.kernel = c.size(0), .stride = c.size(2), .padding = c.size(4), .count_include_pad = c.integer(6) != 0};
}

Tensor run_batch_norm(Case& c) {
  const Tensor mean = c.expected("mean_before").clone(), var = c.expected("var_before").clone();
  const Tensor y = batch_norm(c("x"), c("w"), c("b"), mean, var,
                              {.training = c.integer(0) != 0,
                               .eps = c.number(1),
                               .momentum = c.number(2),
                               .relu = c.integer(3) != 0,
                               .residual = c("r")});
  expect_close(mean, c.expected("mean_after"), c.name() + ": running mean");
  expect_close(var, c.expected("var_after"), c.name() + ": running variance");
  return y;
}

Tensor run_cross_entropy(Case& c) {
  return cross_entropy(c("x"), c.expected("target"),
                       {.label_smoothing = c.number(0),
                        .ignore_index = c.integer(1),
                        .reduction = static_cast<Reduction>(c.integer(2))});
}

Tensor run_attention(Case& c) {
  AttentionOptions options{.causal = c.integer(1) != 0};
  if (c.number(0) != 0) options.scale = c.number(0);
  if (c.count() > 2 && c.integer(2) != 0) options.window = c.integer(2);
  if (c.has("lengths")) options.key_lengths = c.expected("lengths");
  return attention(c("q"), c("k"), c("v"), options);
}

Tensor run_index(Case& c) {
  const Tensor x = c("x");
  if (c.integer(0) == 0) return x.index({Slice{-4, {}, 2}, new_axis, ellipsis, -1});
  if (c.integer(0) == 1) return x.index({Slice{1}, c.expected("i"), c.expected("j")});
  if (c.integer(0) == 2) return x.index({c.expected("i"), Slice{}, c.expected("j")});
  return x.index({1, ne(c.expected("i"), 0.0)});
}

/// The parts in the opposite order.
Tensor joined(std::vector<Tensor> parts, int64_t dim) {
  std::reverse(parts.begin(), parts.end());
  return concat(parts, dim);
}

Tensor run_where(Case& c) {
  const Tensor mask = ne(c.expected("mask"), 0.0);
  if (c.integer(0) == 0) return where(mask, c("a"), c("b"));
  return c.integer(0) == 1 ? where(mask, c("a"), c.number(1)) : where(mask, c.number(1), c("b"));
}

const PatchOptions kPatches{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}};

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table{
#define WEFT_ROW(name, ...) {#name, [](Case& c) { return name(c("x")); }},
      WEFT_UNARY_TABLE(WEFT_ROW, WEFT_NO_ROW)
#undef WEFT_ROW
          {"conv2d",
           [](Case& c) {
             return conv2d(c("x"), c("w"), c("b"),
                           {.stride = c.size(0), .padding = c.size(2), .dilation = c.size(4), .groups = c.integer(6)});
           }},
      {"attention", run_attention},
      {"batch_norm", run_batch_norm},
      {"max_pool2d", [](Case& c) { return max_pool2d(c("x"), pool_options(c)); }},
      {"avg_pool2d", [](Case& c) { return avg_pool2d(c("x"), pool_options(c)); }},
      {"adaptive_avg_pool2d", [](Case& c) { return adaptive_avg_pool2d(c("x"), c.size(0)); }},
      {"linear", [](Case& c) { return linear(c("x"), c("w"), c("b")); }},
      {"matmul", binary([](const Tensor& a, const Tensor& b) { return matmul(a, b); })},
      {"layer_norm", [](Case& c) { return layer_norm(c("x"), c("w"), c("b"), c.number(0)); }},
      {"rms_norm", [](Case& c) { return rms_norm(c("x"), c("w"), c.number(0)); }},
      {"rotary",
       [](Case& c) {
         RotaryOptions options{.frequencies = {}, .first = c.integer(0)};
         for (size_t i = 1; i < c.count(); ++i) options.frequencies.push_back(c.number(i));
         return rotary(c("x"), options);
       }},
      {"softmax", [](Case& c) { return softmax(c("x"), c.integer(0)); }},
      {"log_softmax", [](Case& c) { return log_softmax(c("x"), c.integer(0)); }},
      {"cross_entropy", run_cross_entropy},
      {"cross_entropy_probabilities", run_cross_entropy},
      {"mse_loss", [](Case& c) { return mse_loss(c("a"), c("b"), static_cast<Reduction>(c.integer(0))); }},
      {"leaky_relu", [](Case& c) { return leaky_relu(c("x"), 0.2); }},
      {"gelu_erf", [](Case& c) { return gelu(c("x"), Gelu::erf); }},
      {"gelu_tanh", [](Case& c) { return gelu(c("x"), Gelu::tanh); }},
      {"add", binary([](const Tensor& a, const Tensor& b) { return a + b; })},
      {"sub", binary([](const Tensor& a, const Tensor& b) { return a - b; })},
      {"mul", binary([](const Tensor& a, const Tensor& b) { return a * b; })},
      {"div", binary([](const Tensor& a, const Tensor& b) { return a / b; })},
      {"maximum", binary([](const Tensor& a, const Tensor& b) { return maximum(a, b); })},
      {"minimum", binary([](const Tensor& a, const Tensor& b) { return minimum(a, b); })},
      {"sum", reduction(sum)},
      {"mean", reduction(mean)},
      {"max", reduction(max)},
      {"min", reduction(min)},
      {"norm", reduction(norm)},
      {"conv_transpose2d",
       [](Case& c) {
         return conv_transpose2d(c("x"), c("w"), c("b"),
                                 {.stride = c.size(0),
                                  .padding = c.size(2),
                                  .dilation = c.size(6),
                                  .output_padding = c.size(4),
                                  .groups = c.integer(8)});
       }},
      {"elu", [](Case& c) { return elu(c("x"), 0.7); }},
      {"group_norm", [](Case& c) { return group_norm(c("x"), c.integer(0), c("w"), c("b")); }},
      {"bce_with_logits",
       [](Case& c) {
         return bce_with_logits(
             c("x"), c.expected("target"),
             {.positive_weight = c.expected("weight"), .reduction = static_cast<Reduction>(c.integer(0))});
       }},
      {"l1_loss", [](Case& c) { return l1_loss(c("a"), c("b"), static_cast<Reduction>(c.integer(0))); }},
      {"smooth_l1_loss",
       [](Case& c) { return smooth_l1_loss(c("a"), c("b"), c.number(1), static_cast<Reduction>(c.integer(0))); }},
      {"kl_div", [](Case& c) { return kl_div(c("x"), c.expected("target"), static_cast<Reduction>(c.integer(0))); }},
      {"logsumexp", reduction(logsumexp)},
      {"var", spread(var)},
      {"std", spread(weft::std)},
      {"scatter_add", [](Case& c) { return scatter_add(c("a"), 1, c.expected("index"), c("b")); }},
      {"scatter", [](Case& c) { return scatter(c("a"), c.integer(0), c.expected("index"), c("b")); }},
      {"einsum",
       [](Case& c) {
         return einsum("bik,jbk->ijb", {c("a"), c("b")});
       }},
      {"tril", [](Case& c) { return tril(c("x"), c.integer(0)); }},
      {"triu", [](Case& c) { return triu(c("x"), c.integer(0)); }},
      {"flip",
       [](Case& c) {
         return flip(c("x"), {c.integer(0), c.integer(1)});
       }},
      {"roll", [](Case& c) { return roll(c("x"), c.integer(0), c.integer(1)); }},
      {"repeat",
       [](Case& c) {
         return repeat(c("x"), {c.integer(0), c.integer(1)});
       }},
      {"sort", [](Case& c) { return sort(c("x"), c.integer(0), c.integer(1) != 0).values; }},
      {"argsort", [](Case& c) { return argsort(c("x"), c.integer(0), c.integer(1) != 0); }},
      {"topk", [](Case& c) { return topk(c("x"), c.integer(0), c.integer(1), c.integer(2) != 0).values; }},
      {"cumsum", [](Case& c) { return cumsum(c("x"), c.integer(0)); }},
      {"nonzero", [](Case& c) { return nonzero(c("x")); }},
      {"masked_select", [](Case& c) { return masked_select(c("x"), ne(c.expected("mask"), 0.0)); }},
      {"argmin", [](Case& c) { return argmin(c("x"), c.integer(0), c.integer(1) != 0); }},
      {"argmax", [](Case& c) { return argmax(c("x"), c.integer(0), c.integer(1) != 0); }},
      {"one_hot", [](Case& c) { return one_hot(c("x"), c.integer(0), DType::i64); }},
      {"isnan", [](Case& c) { return isnan(c("x")); }},
      {"isfinite", [](Case& c) { return isfinite(c("x")); }},
      {"masked_fill", [](Case& c) { return masked_fill(c("x"), ne(c.expected("mask"), 0.0), c.number(0)); }},
      {"where", run_where},
      {"gather", [](Case& c) { return gather(c("x"), c.integer(0), c.expected("index")); }},
      {"chunk", [](Case& c) { return joined(chunk(c("x"), c.integer(0), c.integer(1)), c.integer(1)); }},
      {"split",
       [](Case& c) {
         return joined(split(c("x"), {c.integer(0), c.integer(1), c.integer(2)}, 1), 1);
       }},
      {"index", run_index},
      {"index_put",
       [](Case& c) {
         return index_put(c("a"), {c.expected("i"), c.expected("j")}, c("b"), c.integer(0) != 0);
       }},
      {"cumprod", [](Case& c) { return cumprod(c("x"), 1); }},
      {"cdist", [](Case& c) { return cdist(c("a"), c("b")); }},
      {"median", [](Case& c) { return c.integer(0) ? median(c("x"), 1).values : median(c("x")); }},
      {"quantile", [](Case& c) { return quantile(c("x"), c.number(0), 1, true); }},
      {"histogram", [](Case& c) { return histogram(c("x"), 5, -1, 1); }},
      {"repeat_interleave",
       [](Case& c) {
         return c.has("counts") ? repeat_interleave(c("x"), c.expected("counts"), 0) : repeat_interleave(c("x"), 3, 1);
       }},
      {"diagonal", [](Case& c) { return diagonal(c("x"), c.integer(0)); }},
      {"diag_embed", [](Case& c) { return diag_embed(c("x"), c.integer(0)); }},
      {"diag", [](Case& c) { return diag(c("x"), c.integer(0)); }},
      {"meshgrid",
       [](Case& c) {
         return stack(meshgrid({c("a"), c("b")}));
       }},
      {"scatter_reduce",
       [](Case& c) {
         return scatter_reduce(c("a"), 1, c.expected("index"), c("b"), static_cast<Reduce>(c.integer(0)),
                               c.integer(1) != 0);
       }},
      {"pad", [](Case& c) { return pad(c("x"), 1, 3, 2, static_cast<PadMode>(c.integer(0))); }},
      {"pixel_shuffle", [](Case& c) { return pixel_shuffle(c("x"), 2); }},
      {"pixel_unshuffle", [](Case& c) { return pixel_unshuffle(c("x"), 2); }},
      {"unfold", [](Case& c) { return unfold(c("x"), kPatches); }},
      {"fold",
       [](Case& c) {
         return fold(c("x"), {5, 6}, kPatches);
       }},
      {"grid_sample",
       [](Case& c) {
         return grid_sample(c("a"), c.integer(0) == 0 ? c("b") : c.expected("b"),
                            {.nearest = c.integer(0) != 0,
                             .beyond = static_cast<Beyond>(c.integer(1)),
                             .align_corners = c.integer(2) != 0});
       }},
      {"max_pool1d", [](Case& c) { return max_pool1d(c("x"), {.kernel = 3, .stride = 2, .padding = 1}); }},
      {"avg_pool1d", [](Case& c) { return avg_pool1d(c("x"), {.kernel = 3, .stride = 2, .padding = 1}); }},
      {"adaptive_avg_pool1d", [](Case& c) { return adaptive_avg_pool1d(c("x"), 4); }},
      {"max_pool3d",
       [](Case& c) {
         return max_pool3d(c("x"), {.kernel = {2, 3, 2}, .stride = 2, .padding = {1, 1, 0}});
       }},
      {"avg_pool3d",
       [](Case& c) {
         return avg_pool3d(
             c("x"), {.kernel = {2, 3, 2}, .stride = 2, .padding = {1, 1, 0}, .count_include_pad = c.integer(0) != 0});
       }},
      {"adaptive_avg_pool3d",
       [](Case& c) {
         return adaptive_avg_pool3d(c("x"), {2, 1, 3});
       }},
      {"conv_transpose1d",
       [](Case& c) {
         return conv_transpose1d(c("x"), c("w"), c("b"), {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
       }},
      {"conv_transpose3d",
       [](Case& c) {
         return conv_transpose3d(c("x"), c("w"), c("b"),
                                 {.stride = {2, 1, 2}, .padding = {1, 1, 0}, .output_padding = {1, 0, 1}, .groups = 2});
       }},
      {"huber_loss", [](Case& c) { return huber_loss(c("a"), c("b"), 0.7, static_cast<Reduction>(c.integer(0))); }},
      {"gaussian_nll_loss",
       [](Case& c) {
         return gaussian_nll_loss(c("a"), c("b"), c("v"),
                                  {.full = c.integer(1) != 0, .reduction = static_cast<Reduction>(c.integer(0))});
       }},
      {"normalize", [](Case& c) { return normalize(c("x"), c.integer(0)); }},
      {"cosine_similarity", [](Case& c) { return cosine_similarity(c("a"), c("b"), 1); }},
      {"cosine_embedding_loss",
       [](Case& c) { return cosine_embedding_loss(c("a"), c("b"), c.expected("target"), 0.1); }},
      {"ctc_loss",
       [](Case& c) {
         return ctc_loss(log_softmax(c("x"), 2), c.expected("target"), c.expected("in"), c.expected("out"),
                         {.blank = c.integer(1), .reduction = static_cast<Reduction>(c.integer(0))});
       }},
      {"einsum_ellipsis",
       [](Case& c) {
         return einsum("...ij,...jk", {c("a"), c("b")});
       }},
      {"einsum_diagonal",
       [](Case& c) {
         return einsum("iji,ik->jk", {c("a"), c("b")});
       }},
      {"attention_bias",
       [](Case& c) { return attention(c("q"), c("k"), c("v"), {.causal = c.integer(0) != 0, .bias = c("bias")}); }},
      {"fft", [](Case& c) { return fft(complex_of(c, "x"), line_of(c)).parts(); }},
      {"ifft", [](Case& c) { return ifft(complex_of(c, "x"), line_of(c)).parts(); }},
      {"rfft", [](Case& c) { return rfft(c("x"), line_of(c)).parts(); }},
      {"irfft", [](Case& c) { return irfft(complex_of(c, "x"), line_of(c)); }},
      {"fft2", of_complex([](const ComplexTensor& x, const FftnOptions& o) { return fft2(x, o); })},
      {"ifft2", of_complex([](const ComplexTensor& x, const FftnOptions& o) { return ifft2(x, o); })},
      {"fftn", of_complex([](const ComplexTensor& x, const FftnOptions& o) { return fftn(x, o); })},
      {"ifftn", of_complex([](const ComplexTensor& x, const FftnOptions& o) { return ifftn(x, o); })},
      {"rfft2", of_real([](const Tensor& x, const FftnOptions& o) { return rfft2(x, o); })},
      {"rfftn", of_real([](const Tensor& x, const FftnOptions& o) { return rfftn(x, o); })},
      {"irfft2", to_real([](const ComplexTensor& x, const FftnOptions& o) { return irfft2(x, o); })},
      {"irfftn", to_real([](const ComplexTensor& x, const FftnOptions& o) { return irfftn(x, o); })},
      {"fftshift", [](Case& c) { return fftshift(c("x")); }},
      {"ifftshift",
       [](Case& c) {
         return ifftshift(c("x"), {0});
       }},
      {"fftfreq", [](Case& c) { return c("x") + fftfreq(7, 0.5); }},
      {"rfftfreq", [](Case& c) { return c("x") + rfftfreq(7, 0.5); }},
      {"complex", complex_values},
      {"polar", [](Case& c) { return polar(c("a"), c("b")).parts(); }},
      {"svd", svd_values},
      {"svdvals", [](Case& c) { return svdvals(steady(c("x"))); }},
      {"pinv", [](Case& c) { return pinv(steady(c("x"))); }},
      {"lstsq", [](Case& c) { return lstsq(steady(c("a")), c("b")); }},
      {"matrix_norm", [](Case& c) { return matrix_norm(steady(c("x")), static_cast<MatrixNorm>(c.integer(0))); }},
      {"qr", qr_values},
      {"eigh", eigh_values},
      {"eigvalsh", [](Case& c) { return eigvalsh(symmetric(c("x"))); }},
      {"cholesky", [](Case& c) { return cholesky(symmetric(c("x"))); }},
      {"inverse", [](Case& c) { return inverse(steady(c("x"))); }},
      {"det", [](Case& c) { return det(steady(c("x"))); }},
      {"slogdet", [](Case& c) { return slogdet(steady(c("x"))).logabsdet; }},
      {"solve", [](Case& c) { return solve(steady(c("a")), c("b")); }},
      {"triangular_solve", [](Case& c) { return triangular_solve(steady(c("a")), c("b"), c.integer(0) != 0); }},
      {"vector_norm",
       [](Case& c) {
         return vector_norm(c("x"), c.number(0), {1});
       }},
  };
  return table;
}

const File& file() {
  static const File ops("ops");
  return ops;
}

/// `conv2d.3` of `conv2d.3.options`, for every case.
std::vector<std::string> case_names() {
  static const std::string kEnd = ".options";
  std::vector<std::string> names;
  for (const auto& [key, tensor] : file().tensors())
    if (key.ends_with(kEnd)) names.push_back(key.substr(0, key.size() - kEnd.size()));
  return names;
}

class Ops : public testing::TestWithParam<std::string> {};

/// The part that an op needs and this build lacks, or nothing.
std::string lacking(const std::string& op) {
  static const std::set<std::string> kFourier{"fft",  "ifft",  "rfft",  "irfft", "fft2",   "ifft2",
                                              "fftn", "ifftn", "rfft2", "rfftn", "irfft2", "irfftn"};
  static const std::set<std::string> kLinearAlgebra{"svd", "svdvals", "pinv",     "lstsq",           "matrix_norm",
                                                    "qr",  "eigh",    "eigvalsh", "cholesky",        "inverse",
                                                    "det", "slogdet", "solve",    "triangular_solve"};
  if (!WEFT_HAVE_KISSFFT && kFourier.contains(op)) return "kissfft";
  if (!WEFT_HAVE_LAPACKE && kLinearAlgebra.contains(op)) return "LAPACKE";
  return "";
}

TEST_P(Ops, EqualPyTorch) {
  if (const std::string part = lacking(GetParam()); !part.empty())
    GTEST_SKIP() << "needs a build with " << part << "; this one has its stub";
  size_t cases = 0;
  for (const std::string& name : case_names()) {
    if (name.substr(0, name.find('.')) != GetParam()) continue;
    ++cases;
    Case c(file(), name);
    const Tensor y = functions().at(GetParam())(c);
    expect_close(y, c.expected("y"), name + ".y");
    if (!y.is_floating()) continue;  // positions have no gradient
    tests::add_row({"golden", GetParam()});
    ASSERT_TRUE(c.has("dy")) << name;
    y.backward(c.expected("dy"));
    for (const auto& [key, input] : c.inputs()) {
      ASSERT_TRUE(input.requires_grad()) << name << '.' << key;
      expect_close(input.grad(), c.expected('d' + key), name + ".d" + key);
    }
  }
  EXPECT_GT(cases, 0u);
}

/// All but the ops of kernels/contracts/unary_table.h for which the file has no case.
std::set<std::string> op_names() {
  std::set<std::string> names;
  for (const auto& [name, function] : functions()) names.insert(name);
#define WEFT_ROW(name, ...) names.erase(#name);
  WEFT_UNARY_TABLE(WEFT_ROW, WEFT_NO_ROW)
#undef WEFT_ROW
  for (const std::string& name : case_names()) names.insert(name.substr(0, name.find('.')));
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Ops, testing::ValuesIn(op_names()), [](const auto& test) { return test.param; });

TEST(OpsFile, EveryCaseIsTested) {
  for (const std::string& name : case_names())
    EXPECT_TRUE(functions().contains(name.substr(0, name.find('.')))) << name;
}

}  // namespace
}  // namespace weft::golden
