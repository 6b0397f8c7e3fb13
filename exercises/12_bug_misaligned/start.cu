// SPDX-License-Identifier: Apache-2.0
// out[r][c] = in[r][c] * factor[r]. This kernel has bugs.

__global__ void scale_kernel(const float* in, const float* factor, float* out, int rows, int columns) {
  const int row = blockIdx.x;
  const float4* from = reinterpret_cast<const float4*>(in + row * columns);
  float4* to = reinterpret_cast<float4*>(out + row * columns);
  for (int i = threadIdx.x; i < (columns + 3) / 4; i += blockDim.x) {
    float4 v = from[i];
    v.x *= factor[row], v.y *= factor[row], v.z *= factor[row], v.w *= factor[row];
    to[i] = v;
  }
}

void scale(const float* in, const float* factor, float* out, int rows, int columns) {
  scale_kernel<<<rows, 64>>>(in, factor, out, rows, columns);
}
