// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/fft.h"

namespace weft::kernels::cpu {
namespace {

[[noreturn]] void no_kissfft(const char* op) {
  fail(op, ": this build has no kissfft. On Debian: apt-get install libkissfft-dev, then configure again");
}

}  // namespace

void fft_lines(const Queue&, const View&, const View&, double, bool) { no_kissfft("fft"); }
void rfft_lines(const Queue&, const View&, const View&, double) { no_kissfft("rfft"); }
void irfft_lines(const Queue&, const View&, const View&, double) { no_kissfft("irfft"); }

}  // namespace weft::kernels::cpu
