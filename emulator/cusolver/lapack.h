// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

// LAPACK by its Fortran interface, loaded at the first call: no program needs the library that factorises nothing.

namespace emulator::lapack {

using Int = int;           ///< an integer of Debian's build and of OpenBLAS's usual one
using Text = const char*;  ///< one letter
using Length = size_t;     ///< a letter's length, 1: Fortran's hidden argument

template <class T>
struct Functions {
  void (*potrf)(Text uplo, const Int* n, T* a, const Int* lda, Int* info, Length);
  void (*getrf)(const Int* m, const Int* n, T* a, const Int* lda, Int* pivots, Int* info);
  void (*getrs)(Text op, const Int* n, const Int* columns, const T* a, const Int* lda, const Int* pivots, T* b,
                const Int* ldb, Int* info, Length);
  void (*geqrf)(const Int* m, const Int* n, T* a, const Int* lda, T* tau, T* work, const Int* count, Int* info);
  void (*orgqr)(const Int* m, const Int* n, const Int* k, T* a, const Int* lda, const T* tau, T* work, const Int* count,
                Int* info);
  void (*syevd)(Text job, Text uplo, const Int* n, T* a, const Int* lda, T* w, T* work, const Int* count, Int* ints,
                const Int* int_count, Int* info, Length, Length);
  void (*gesvd)(Text job_u, Text job_vt, const Int* m, const Int* n, T* a, const Int* lda, T* s, T* u, const Int* ldu,
                T* vt, const Int* ldvt, T* work, const Int* count, Int* info, Length, Length);
};

struct Library {
  Functions<float> f32{};
  Functions<double> f64{};
  bool complete = false;

  template <class T>
  const Functions<T>& of() const {
    if constexpr (sizeof(T) == 4)
      return f32;
    else
      return f64;
  }
};

/// `complete` is false where no LAPACK is found.
const Library& library();

}  // namespace emulator::lapack
