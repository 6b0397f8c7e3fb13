// SPDX-License-Identifier: Apache-2.0
// Symbols that programs of older headers link, with the parameters of the newer ones.
#include "emulator/cuda/driver/call.h"

#undef cuDeviceGetUuid
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuEventElapsedTime
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64

WEFT_EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }
WEFT_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }
WEFT_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }
WEFT_EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}
WEFT_EXPORT CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(ms, start, end);
}
WEFT_EXPORT CUresult cuMemAdvise(CUdeviceptr memory, size_t bytes, CUmem_advise advice, CUdevice) {
  return cuMemAdvise_v2(memory, bytes, advice, {});
}
WEFT_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr memory, size_t bytes, CUdevice, CUstream stream) {
  return cuMemPrefetchAsync_v2(memory, bytes, {}, 0, stream);
}
WEFT_EXPORT CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr where, cuuint32_t value, unsigned flags) {
  return cuStreamWaitValue32_v2(stream, where, value, flags);
}
WEFT_EXPORT CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr where, cuuint64_t value, unsigned flags) {
  return cuStreamWaitValue64_v2(stream, where, value, flags);
}
WEFT_EXPORT CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr where, cuuint32_t value, unsigned flags) {
  return cuStreamWriteValue32_v2(stream, where, value, flags);
}
WEFT_EXPORT CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr where, cuuint64_t value, unsigned flags) {
  return cuStreamWriteValue64_v2(stream, where, value, flags);
}
