// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cufft.h"
#include "kernels/error.h"

namespace weft::kernels::vendor::cufft {

const std::string& missing() {
  static const std::string text =
      "this build has no cuFFT. Configure with -DWEFT_CUDA=ON and the toolkit's cuFFT headers (cufft.h)";
  return text;
}
void fft_lines(const Queue&, const View&, const View&, double, bool) { fail("fft: ", missing()); }
void rfft_lines(const Queue&, const View&, const View&, double) { fail("rfft: ", missing()); }
void irfft_lines(const Queue&, const View&, const View&, double) { fail("irfft: ", missing()); }

}  // namespace weft::kernels::vendor::cufft
