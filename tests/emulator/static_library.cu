// SPDX-License-Identifier: Apache-2.0
// Has a function of cuRAND's in itself, as -lcurand_static would leave it, and a kernel.
extern "C" int curandCreateGenerator() { return 0; }
__global__ void nothing_kernel() {}
int main() {
  nothing_kernel<<<1, 1>>>();
  return curandCreateGenerator();
}
