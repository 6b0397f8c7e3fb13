// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and linear algebra of the device cuda: by NVIDIA's library. Where it is missing the host computes,
// and waits for the device before and after.
#include <cstdio>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/contracts/fft.h"
#include "kernels/contracts/linalg.h"
#include "kernels/engines/cuda_stream.h"
#include "kernels/engines/cufft.h"
#include "kernels/engines/cusolver.h"
#include "kernels/runtime/engine.h"
#include "kernels/runtime/runtime.h"
#include "kernels/runtime/transfer.h"

namespace weft::kernels::cuda {
namespace {

/// A dense view's copy in the host's memory.
class OnHost {
 public:
  explicit OnHost(const View& view) : device_(view), host_(view) {
    const size_t bytes = static_cast<size_t>(view.numel()) * size_of(view.dtype);
    memory_ = std::make_unique<std::byte[]>(bytes + 1);
    host_.data = memory_.get();
  }
  size_t bytes() const { return static_cast<size_t>(host_.numel()) * size_of(host_.dtype); }
  const View& device() const { return device_; }
  const View& host() const { return host_; }

 private:
  View device_, host_;
  std::unique_ptr<std::byte[]> memory_;
};

/// Runs `compute` on copies of the inputs, then copies the outputs to the device.
template <class Compute>
void on_host(const char* op, const Queue& queue, std::vector<OnHost> outputs, std::vector<OnHost> inputs,
             const Compute& compute) {
  WEFT_CHECK(!vendor::is_capturing(queue.stream), op, ": computes on the host, which a captured step cannot do");
  for (const OnHost& input : inputs)
    if (input.bytes() > 0) transfer(queue, "copy_to_host", input.host().data, input.device().data, input.bytes());
  runtime().synchronize_stream(queue.device.index, queue.stream);
  compute(Queue{}, outputs, inputs);
  for (const OnHost& output : outputs)
    if (output.bytes() > 0) transfer(queue, "copy_to_device", output.device().data, output.host().data, output.bytes());
  runtime().synchronize_stream(queue.device.index, queue.stream);
}

std::vector<OnHost> copies(std::initializer_list<const View*> views) {
  std::vector<OnHost> result;
  for (const View* view : views) result.emplace_back(*view);
  return result;
}

/// Does NVIDIA's library compute? If not, stderr has one line. Errors: WEFT_ENGINE=vendor without it.
bool library_computes(const char* op, const std::string& missing, const char* what, std::once_flag& said) {
  if (missing.empty()) return true;
  WEFT_CHECK(engine() != Engine::vendor, op, ": ", missing);
  std::call_once(said,
                 [&] { std::fprintf(stderr, "weft: the host computes %s of the GPU: %s\n", what, missing.c_str()); });
  return false;
}

bool cufft_computes(const char* op) {
  static std::once_flag said;
  return library_computes(op, vendor::cufft::missing(), "Fourier transforms", said);
}

bool cusolver_computes(const char* op, const Queue& queue) {
  WEFT_CHECK(!vendor::is_capturing(queue.stream), op, ": waits for the device, which a captured step cannot do");
  vendor::select_device(queue.device.index);  // cuSOLVER's first handle is made here
  static std::once_flag said;
  return library_computes(op, vendor::cusolver::missing(), "linear algebra", said);
}

}  // namespace

void fft_lines(const Queue& queue, const View& y, const View& x, double scale, bool inverse) {
  if (cufft_computes("fft")) return vendor::cufft::fft_lines(queue, y, x, scale, inverse);
  on_host("fft", queue, copies({&y}), copies({&x}), [&](const Queue& cpu, const auto& out, const auto& in) {
    cpu::fft_lines(cpu, out[0].host(), in[0].host(), scale, inverse);
  });
}

void rfft_lines(const Queue& queue, const View& y, const View& x, double scale) {
  if (cufft_computes("rfft")) return vendor::cufft::rfft_lines(queue, y, x, scale);
  on_host("rfft", queue, copies({&y}), copies({&x}), [&](const Queue& cpu, const auto& out, const auto& in) {
    cpu::rfft_lines(cpu, out[0].host(), in[0].host(), scale);
  });
}

void irfft_lines(const Queue& queue, const View& y, const View& x, double scale) {
  if (cufft_computes("irfft")) return vendor::cufft::irfft_lines(queue, y, x, scale);
  on_host("irfft", queue, copies({&y}), copies({&x}), [&](const Queue& cpu, const auto& out, const auto& in) {
    cpu::irfft_lines(cpu, out[0].host(), in[0].host(), scale);
  });
}

void svd(const Queue& queue, const View& u, const View& s, const View& vh, const View& x) {
  if (cusolver_computes("svd", queue)) return vendor::cusolver::svd(queue, u, s, vh, x);
  on_host("svd", queue, copies({&u, &s, &vh}), copies({&x}), [&](const Queue& cpu, const auto& out, const auto& in) {
    cpu::svd(cpu, out[0].host(), out[1].host(), out[2].host(), in[0].host());
  });
}

void eigh(const Queue& queue, const View& w, const View& v, const View& x) {
  if (cusolver_computes("eigh", queue)) return vendor::cusolver::eigh(queue, w, v, x);
  on_host("eigh", queue, copies({&w, &v}), copies({&x}), [&](const Queue& cpu, const auto& out, const auto& in) {
    cpu::eigh(cpu, out[0].host(), out[1].host(), in[0].host());
  });
}

void qr(const Queue& queue, const View& q, const View& r, const View& x) {
  if (cusolver_computes("qr", queue)) return vendor::cusolver::qr(queue, q, r, x);
  on_host("qr", queue, copies({&q, &r}), copies({&x}), [&](const Queue& cpu, const auto& out, const auto& in) {
    cpu::qr(cpu, out[0].host(), out[1].host(), in[0].host());
  });
}

void cholesky(const Queue& queue, const View& l, const View& x) {
  if (cusolver_computes("cholesky", queue)) return vendor::cusolver::cholesky(queue, l, x);
  on_host("cholesky", queue, copies({&l}), copies({&x}),
          [&](const Queue& cpu, const auto& out, const auto& in) { cpu::cholesky(cpu, out[0].host(), in[0].host()); });
}

void lu(const Queue& queue, const View& lu, const View& parity, const View& x) {
  if (cusolver_computes("lu", queue)) return vendor::cusolver::lu(queue, lu, parity, x);
  on_host("lu", queue, copies({&lu, &parity}), copies({&x}), [&](const Queue& cpu, const auto& out, const auto& in) {
    cpu::lu(cpu, out[0].host(), out[1].host(), in[0].host());
  });
}

void solve(const Queue& queue, const View& y, const View& a, const View& b) {
  if (cusolver_computes("solve", queue)) return vendor::cusolver::solve(queue, y, a, b);
  on_host("solve", queue, copies({&y}), copies({&a, &b}), [&](const Queue& cpu, const auto& out, const auto& in) {
    cpu::solve(cpu, out[0].host(), in[0].host(), in[1].host());
  });
}

void triangular_solve(const Queue& queue, const View& y, const View& a, const View& b, bool upper) {
  if (cusolver_computes("triangular_solve", queue)) return vendor::cusolver::triangular_solve(queue, y, a, b, upper);
  on_host("triangular_solve", queue, copies({&y}), copies({&a, &b}),
          [&](const Queue& cpu, const auto& out, const auto& in) {
            cpu::triangular_solve(cpu, out[0].host(), in[0].host(), in[1].host(), upper);
          });
}

}  // namespace weft::kernels::cuda
