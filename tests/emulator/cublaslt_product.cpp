// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/cublaslt_matrices.h"

namespace cublaslt_program {
namespace {

// FP8's factors, of A, B, D and the aux buffer.
constexpr float kFactors[] = {0.5f, 2.0f, 4.0f, 2.0f};

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

}  // namespace

cublasLtHandle_t handle() {
  static cublasLtHandle_t made = [] {
    cublasLtHandle_t one = nullptr;
    LT(cublasLtCreate(&one));
    return one;
  }();
  return made;
}

Product::Product(const Case& w)
    : what(w),
      a(w.a, w.transpose_a ? w.k : w.m, w.transpose_a ? w.m : w.k, w.batches, w.pad, w.rows_a),
      b(w.b, w.transpose_b ? w.n : w.k, w.transpose_b ? w.k : w.n, w.batches, w.pad, w.rows_b),
      c(w.c, w.m, w.n, w.batches, w.in_place ? w.pad : w.pad / 2, w.rows_d),
      d(w.d, w.m, w.n, w.batches, w.pad, w.rows_d),
      vector_type_(is_fp8(w.d)                        ? w.c
                   : is_fp8(w.a) && w.d == CUDA_R_32F ? CUDA_R_16BF
                                                      : w.d),
      alpha_(scalar(w.scale, w.alpha)),
      beta_(scalar(w.scale, w.beta)),
      device_alpha_(alpha_.size() * static_cast<size_t>(w.m * w.batches)),
      device_beta_(beta_.size()),
      vector_(static_cast<size_t>(vector_length() * w.batches) * size_of(vector_type_)),
      aux_(static_cast<size_t>(aux_stride() * w.batches) * (by_bits() ? 1 : size_of(w.d)) / (by_bits() ? 8 : 1)),
      factors_(sizeof kFactors),
      amax_(2 * sizeof(float)),
      workspace_(std::max<size_t>(w.workspace, 1)) {
  for (Matrix* const x : {&a, &b, &c}) x->fill();
  if (what.in_place) {
    d.memory.host = c.memory.host;
    d.memory.put();
  }
  old_ = d.memory.host;
  LT(cublasLtMatmulDescCreate(&descriptor, what.compute, what.scale));
  set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{what.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N});
  set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t{what.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N});
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, what.epilogue);
  set(CUBLASLT_MATMUL_DESC_POINTER_MODE, static_cast<int32_t>(what.mode));
  if (what.epilogue & (4 | 16 | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB)) {
    if (has(4)) {
      for (size_t i = 0; i < vector_.host.size(); i += size_of(vector_type_))
        write(vector_type_, vector_.host.data() + i, std::uniform_real_distribution<double>(-1, 1)(generator()));
      vector_.put();
    }
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(vector_.at()));
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(vector_type_));
    set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, vector_length());
  }
  if (has(128)) {
    if (has(64))  // input of GELU
      for (size_t i = 0; i < aux_.host.size(); i += size_of(what.d))
        write(what.d, aux_.host.data() + i, std::uniform_real_distribution<double>(-2, 2)(generator()));
    if (has(8))
      for (char& byte : aux_.host) byte = static_cast<char>(generator()());
    aux_.put();
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(aux_.at()));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_ld());
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, aux_stride());
  }
  if (what.scaled) {
    std::memcpy(factors_.host.data(), kFactors, sizeof kFactors);
    factors_.put();
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(factors_.at()));
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(factors_.at(4)));
    if (is_fp8(what.d)) {
      set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, static_cast<const void*>(factors_.at(8)));
      set(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, static_cast<void*>(amax_.at()));
    }
  }
  a_pointer = a.memory.at(), b_pointer = b.memory.at(), d_pointer = d.memory.at();
  c_pointer = what.in_place ? d.memory.at() : c.memory.at();
  alpha_pointer = alpha_.data(), beta_pointer = beta_.data();
  if (what.mode == CUBLASLT_POINTER_MODE_DEVICE) {
    fill(device_alpha_, alpha_);
    fill(device_beta_, beta_);
    alpha_pointer = device_alpha_.at(), beta_pointer = device_beta_.at();
  } else if (what.mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST) {
    for (size_t i = 0; i < device_alpha_.host.size() / alpha_.size(); ++i)
      write(what.scale, device_alpha_.host.data() + i * alpha_.size(), 0.01 * static_cast<double>(i + 1));
    device_alpha_.put();
    alpha_pointer = device_alpha_.at();
    set(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, what.m);
  }
  workspace_pointer = workspace_.at();
  workspace_bytes = what.workspace;
}

Product::~Product() { cublasLtMatmulDescDestroy(descriptor); }

cublasStatus_t Product::find(size_t workspace) {
  cublasLtMatmulPreference_t preference = nullptr;
  LT(cublasLtMatmulPreferenceCreate(&preference));
  LT(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                          sizeof workspace));
  algorithms.resize(8);
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle(), descriptor, a.layout, b.layout, c.layout,
                                                               d.layout, preference, 8, algorithms.data(), &count);
  algorithms.resize(static_cast<size_t>(count));
  LT(cublasLtMatmulPreferenceDestroy(preference));
  return status;
}

cublasStatus_t Product::run(cudaStream_t stream) {
  if (!algorithm && what.splits) {
    LT(find(what.workspace));
    for (const auto& one : algorithms) {
      int splits = 0;
      LT(cublasLtMatmulAlgoConfigGetAttribute(&one.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, sizeof splits,
                                              nullptr));
      if (splits == what.splits) algorithm = &one.algo;
    }
    CHECK(algorithm, what.text());
  }
  return cublasLtMatmul(handle(), descriptor, alpha_pointer, a_pointer, a.layout, b_pointer, b.layout, beta_pointer,
                        c_pointer, c.layout, d_pointer, d.layout, algorithm, workspace_pointer, workspace_bytes,
                        stream);
}

double Product::factor(int64_t i) const {
  if (what.mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST)
    return read(what.scale, device_alpha_.host.data() + static_cast<size_t>(i) * alpha_.size());
  return read(what.scale, alpha_.data()) * (what.scaled ? kFactors[0] * kFactors[1] : 1);
}

/// A factor as the fast compute types may round it.
double Product::rounded(double value) const {
  if (what.compute == CUBLAS_COMPUTE_32F_FAST_16F) return stored(CUDA_R_16F, value);
  if (what.compute == CUBLAS_COMPUTE_32F_FAST_16BF) return stored(CUDA_R_16BF, value);
  if (what.compute != CUBLAS_COMPUTE_32F_FAST_TF32 || value == 0) return value;
  const double step = std::ldexp(1.0, std::ilogb(value) - 10);
  return std::nearbyint(value / step) * step;
}

void Product::check_aux(int64_t batch, int64_t i, int64_t j, double before, double tolerance) {
  const int64_t at = batch * aux_stride() + j * aux_ld() + i;
  if (by_bits()) {
    const bool bit = aux_.host[static_cast<size_t>(at / 8)] >> (at % 8) & 1;
    CHECK(bit == (before > 0) || std::abs(before) <= tolerance, what.text());
  } else {
    const double got = read(what.d, aux_.host.data() + static_cast<size_t>(at) * size_of(what.d));
    CHECK(std::abs(got - before) <= tolerance + 2 * rounding(what.d, before), what.text());
  }
}

void Product::check() {
  CUDA(cudaDeviceSynchronize());
  for (Buffer* const x : {&d.memory, &vector_, &aux_, &amax_}) x->get();
  // Sums are rounded in the compute type, by k or fewer additions; those of 16F in f32, and once each 16 products.
  const double unit = what.compute == CUBLAS_COMPUTE_16F ? std::ldexp(1.0, -11) * (static_cast<double>(what.k) / 16 + 2)
                      : what.scale == CUDA_R_64F         ? std::ldexp(1.0, -53) * static_cast<double>(what.k + 8)
                      : what.compute == CUBLAS_COMPUTE_32I ? 0
                                                           : std::ldexp(1.0, -24) * static_cast<double>(what.k + 8);
  const double beta = read(what.scale, beta_.data()), fine = what.scale == CUDA_R_64F ? 1e-15 : 1e-6;
  double most = 0;
  std::vector<char> untouched = d.memory.host;
  for (int64_t batch = 0; batch < what.batches; ++batch) {
    std::vector<double> sums(static_cast<size_t>(vector_length())), sizes(sums.size());
    const auto op_a = [&](int64_t i, int64_t k) { return what.transpose_a ? a(batch, k, i) : a(batch, i, k); };
    const auto op_b = [&](int64_t k, int64_t j) { return what.transpose_b ? b(batch, j, k) : b(batch, k, j); };
    for (int64_t i = 0; i < what.m; ++i)
      for (int64_t j = 0; j < what.n; ++j) {
        double x = 0, size = 0;
        for (int64_t k = 0; k < what.k; ++k) {
          const double term = rounded(op_a(i, k)) * rounded(op_b(k, j));
          x += term, size += std::abs(term);
        }
        const double alpha = factor(
            batch *
                (what.mode == CUBLASLT_POINTER_MODE_DEVICE || what.mode == CUBLASLT_POINTER_MODE_HOST ? 0 : what.m) +
            i);
        x *= alpha, size *= std::abs(alpha);
        double tolerance = unit * size;
        if (beta != 0) {
          x += beta * c(batch, i, j);
          size += std::abs(beta * c(batch, i, j));
        }
        if (has(4)) {
          const double bias =
              read(vector_type_, vector_.host.data() + static_cast<size_t>(batch * what.m + i) * size_of(vector_type_));
          x += bias, size += std::abs(bias);
        }
        tolerance += fine * size;
        if (has(128) && has(2 | 32)) check_aux(batch, i, j, x, tolerance);
        const int64_t aux = batch * aux_stride() + j * aux_ld() + i;
        if (has(2)) x = std::max(x, 0.0);
        if (has(32)) x = gelu(x);
        if (has(8) && !(aux_.host[static_cast<size_t>(aux / 8)] >> (aux % 8) & 1)) x = 0;
        if (has(64)) x *= gelu_slope(read(what.d, aux_.host.data() + static_cast<size_t>(aux) * size_of(what.d)));
        tolerance = tolerance * 1.2 + fine * size;  // GELU's slope is below 1.13
        if (has(16)) sums[static_cast<size_t>(i)] += x, sizes[static_cast<size_t>(i)] += tolerance + fine * std::abs(x);
        most = std::max(most, std::abs(x));
        if (what.scaled && is_fp8(what.d)) x *= kFactors[2], tolerance *= kFactors[2];
        if (what.d == CUDA_R_8I)
          x = std::clamp(std::nearbyint(x), -128.0, 127.0), tolerance = what.scale == CUDA_R_32F ? 1 : 0;
        const double got = d(batch, i, j);
        if (!(std::abs(got - x) <= tolerance + 1.01 * rounding(what.d, x)))
          die(__LINE__, "D",
              what.text() + " at " + std::to_string(i) + ", " + std::to_string(j) + ": " + std::to_string(got) +
                  " instead of " + std::to_string(x) + ", tolerance " + std::to_string(tolerance));
        std::memcpy(untouched.data() + d.offset(batch, i, j), old_.data() + d.offset(batch, i, j), size_of(what.d));
      }
    if (what.epilogue == CUBLASLT_EPILOGUE_BGRADA || what.epilogue == CUBLASLT_EPILOGUE_BGRADB)
      for (size_t i = 0; i < sums.size(); ++i)
        for (int64_t k = 0; k < what.k; ++k) {
          const double x = what.epilogue == CUBLASLT_EPILOGUE_BGRADA ? op_a(static_cast<int64_t>(i), k)
                                                                     : op_b(k, static_cast<int64_t>(i));
          sums[i] += x, sizes[i] += std::abs(x) * static_cast<double>(what.k) * fine;
        }
    else if (!has(16))
      continue;
    for (size_t i = 0; i < sums.size(); ++i) {
      const double got = read(
          vector_type_, vector_.host.data() + (static_cast<size_t>(batch) * sums.size() + i) * size_of(vector_type_));
      CHECK(std::abs(got - sums[i]) <= sizes[i] + 1.01 * rounding(vector_type_, sums[i]), what.text());
    }
  }
  CHECK(untouched == old_, what.text() + ": the padding of D was written");
  if (what.scaled && is_fp8(what.d))
    CHECK(std::abs(read(CUDA_R_32F, amax_.host.data()) - most) <= (unit * static_cast<double>(what.k) + 1e-5),
          what.text());
}

}  // namespace cublaslt_program
