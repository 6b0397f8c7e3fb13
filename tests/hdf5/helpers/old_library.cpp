// SPDX-License-Identifier: Apache-2.0
// HDF5 of another minor version, as far as Weft looks at it.
extern "C" int H5dont_atexit() { return 0; }
extern "C" int H5get_libversion(unsigned* major, unsigned* minor, unsigned* release) {
  *major = 1;
  *minor = 8;
  *release = 23;
  return 0;
}
