// SPDX-License-Identifier: Apache-2.0
// These let every program link and load. The header is not included: they replace functions of any parameters.
namespace emulator::fft {
int refuse_call(const char* name) noexcept;
}

#define REFUSED(name) \
  extern "C" __attribute__((visibility("default"))) int name() { return emulator::fft::refuse_call(#name); }
REFUSED(cufftDebug)
REFUSED(cufftGetPlanPropertyInt64)
REFUSED(cufftResetPlanProperty)
REFUSED(cufftSetPlanPropertyInt64)
REFUSED(cufftXtClearCallback)
REFUSED(cufftXtExecDescriptor)
REFUSED(cufftXtExecDescriptorC2C)
REFUSED(cufftXtExecDescriptorC2R)
REFUSED(cufftXtExecDescriptorD2Z)
REFUSED(cufftXtExecDescriptorR2C)
REFUSED(cufftXtExecDescriptorZ2D)
REFUSED(cufftXtExecDescriptorZ2Z)
REFUSED(cufftXtFree)
REFUSED(cufftXtMakePlanGuru64)
REFUSED(cufftXtMalloc)
REFUSED(cufftXtMemcpy)
REFUSED(cufftXtQueryPlan)
REFUSED(cufftXtSetCallback)
REFUSED(cufftXtSetCallbackSharedSize)
REFUSED(cufftXtSetGPUs)
REFUSED(cufftXtSetJITCallback)
REFUSED(cufftXtSetWorkArea)
REFUSED(cufftXtSetWorkAreaPolicy)
