// SPDX-License-Identifier: Apache-2.0
// A program that has nothing of CUDA but a library with the runtime inside.
extern "C" int squares();

int main() { return squares() == 10416 ? 0 : 1; }
