// SPDX-License-Identifier: Apache-2.0
// See relocatable.cu.
static __device__ __noinline__ int mine() { return 100; }

__device__ int elsewhere[32] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
__device__ int twice_and(int x) { return 2 * x + mine(); }
