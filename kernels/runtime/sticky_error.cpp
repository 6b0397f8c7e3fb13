// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/sticky_error.h"

#include "kernels/runtime/kernel_trace.h"

namespace weft::kernels {
namespace {

/// Errors after which the process must end by CUDA's runtime API ("leaves the process in an inconsistent state").
/// Numbers, since older toolkits lack some names.
bool is_sticky(int code) {
  switch (code) {
    case 214:  // cudaErrorECCUncorrectable
    case 220:  // cudaErrorNvlinkUncorrectable
    case 226:  // cudaErrorContained
    case 700:  // cudaErrorIllegalAddress
    case 702:  // cudaErrorLaunchTimeout
    case 710:  // cudaErrorAssert
    case 714:  // cudaErrorHardwareStackError
    case 715:  // cudaErrorIllegalInstruction
    case 716:  // cudaErrorMisalignedAddress
    case 717:  // cudaErrorInvalidAddressSpace
    case 718:  // cudaErrorInvalidPc
    case 719:  // cudaErrorLaunchFailure
    case 721:  // cudaErrorTensorMemoryLeak
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string sticky_error_hint(int code) {
  if (!is_sticky(code) || kernel_checks().synchronize) return "";
  return ", raised by earlier work: run again with WEFT_SYNC=1 or under compute-sanitizer to see by which kernel";
}

}  // namespace weft::kernels
