// SPDX-License-Identifier: Apache-2.0
// Has a function of cuRAND's in itself and, with LARGE, as much code as -lcurand_static has.
#ifdef LARGE
__attribute__((section(".nv_fatbin"), used)) const char filler[5 << 20] = {1};
#endif
extern "C" int curandCreateGenerator() { return 0; }
__global__ void nothing_kernel() {}
int main() {
  nothing_kernel<<<1, 1>>>();
  return curandCreateGenerator();
}
