// SPDX-License-Identifier: Apache-2.0
// The functions of curand.h: numbers are made at the call and copied in the order of the stream.
#pragma GCC visibility push(default)
#include <curand.h>
#pragma GCC visibility pop

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <vector>

#include "emulator/cuda/library_stream.h"
#include "emulator/curand/sequence.h"
#include "emulator/machine/findings.h"

struct curandGenerator_st {
  std::unique_ptr<emulator::rand::Sequence> sequence;
  bool on_host = false;
  int device = 0;
  cudaStream_t stream = nullptr;
  uint64_t seed = 0, offset = 0;
  bool started = false;  ///< the sequence is where seed and offset say, or has gone on from there
};

using namespace emulator;
using emulator::rand::Draw;

namespace {

struct Failure {
  curandStatus_t status;
  std::string text;
};
void require(bool right, curandStatus_t status, const std::string& text) {
  if (!right) throw Failure{status, text};
}

std::mutex mutex;
std::set<curandGenerator_t>& generators() {
  static auto& all = *new std::set<curandGenerator_t>;
  return all;
}

/// One line on stderr, once.
void say(const std::string& text) {
  static auto& said = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (said.insert(text).second) std::fprintf(stderr, "weft-emulate: %s\n", text.c_str());
}

template <class F>
curandStatus_t call(const char* name, F&& body) noexcept {
  try {
    body();
    return CURAND_STATUS_SUCCESS;
  } catch (const Failure& failure) {
    say(cat(name, ": ", failure.text, " (status ", failure.status, " of cuRAND)"));
    return failure.status;
  } catch (const cuda::LibraryMisuse&) {
    return CURAND_STATUS_LAUNCH_FAILURE;
  } catch (const std::bad_alloc&) {
    return CURAND_STATUS_ALLOCATION_FAILED;
  } catch (const std::exception& error) {
    say(cat(name, ": ", error.what()));
    return CURAND_STATUS_INTERNAL_ERROR;
  }
}

/// For calls that the emulator lacks: the exit code changes.
[[noreturn]] void refuse(const std::string& text) {
  count_fault();
  throw Failure{CURAND_STATUS_TYPE_ERROR, text};
}

curandGenerator_st& generator_of(curandGenerator_t generator) {
  const std::lock_guard lock(mutex);
  if (!generators().contains(generator))
    throw Failure{CURAND_STATUS_NOT_INITIALIZED, "the generator is none, or was destroyed"};
  return *generator;
}

void create(curandGenerator_t* result, curandRngType_t type, bool on_host) {
  require(result, CURAND_STATUS_OUT_OF_RANGE, "the generator is NULL");
  auto made = std::make_unique<curandGenerator_st>();
  made->on_host = on_host;
  if (type == CURAND_RNG_PSEUDO_DEFAULT || type == CURAND_RNG_PSEUDO_XORWOW)
    made->sequence = rand::make_xorwow();
  else if (type == CURAND_RNG_PSEUDO_PHILOX4_32_10)
    made->sequence = rand::make_philox();
  else
    refuse(cat("generator type ", type, " is not emulated: XORWOW and PHILOX4_32_10 are"));
  if (const cudaError_t code = on_host ? cudaSuccess : cudaGetDevice(&made->device); code != cudaSuccess)
    throw Failure{CURAND_STATUS_INITIALIZATION_FAILED, cat("cudaGetDevice: ", cudaGetErrorString(code))};
  const std::lock_guard lock(mutex);
  generators().insert(*result = made.release());
}

/// `make` fills the numbers.
template <class T, class F>
void generate(const char* name, curandGenerator_t handle, T* to, size_t count, F&& make) {
  curandGenerator_st& g = generator_of(handle);
  if (count == 0) return;
  require(to, CURAND_STATUS_OUT_OF_RANGE, "the memory is NULL");
  if (!g.started) {
    g.sequence->seed(g.seed);
    g.sequence->move(g.offset);
    g.started = true;
  }
  if (g.on_host) return make(*g.sequence, std::span<T>(to, count));
  const cuda::LibraryCall call{"cuRAND", cat(name, " of ", count)};
  std::vector<cuda::LibraryOperand> operands{cuda::library_operand("the output", to, true, count * sizeof(T))};
  operands[0].alignment = sizeof(T);
  cudaError_t code = cuda::require_stream(call, g.stream, g.device);
  if (code == cudaSuccess) {
    cuda::require_operands(call, operands, g.device);
    const auto values = std::make_shared<std::vector<T>>(count);
    make(*g.sequence, std::span<T>(*values));
    code = cuda::enqueue_library_call(g.stream, call, std::move(operands),
                                      [=] { std::memcpy(to, values->data(), count * sizeof(T)); });
  }
  require(code == cudaSuccess, CURAND_STATUS_LAUNCH_FAILURE, cat("the stream: ", cudaGetErrorString(code)));
}

template <class T>
curandStatus_t plain(const char* name, curandGenerator_t generator, Draw draw, T* to, size_t count) {
  return call(name, [&] {
    generate(name, generator, to, count, [&](rand::Sequence& from, std::span<T> all) { from.fill(draw, all); });
  });
}

template <class T>
curandStatus_t normals(const char* name, curandGenerator_t generator, Draw draw, T* to, size_t count, T mean,
                       T deviation, bool logarithm) {
  return call(name, [&] {
    require(count % 2 == 0 || !generator_of(generator).sequence->wants_pairs(), CURAND_STATUS_LENGTH_NOT_MULTIPLE,
            cat(count, " normals: this generator makes them in pairs"));
    generate(name, generator, to, count, [&](rand::Sequence& from, std::span<T> all) {
      from.fill(draw, all);
      for (T& x : all) x = mean + deviation * x;
      if (logarithm)
        for (T& x : all) x = std::exp(x);
    });
  });
}

/// Poisson's distribution function, where its values differ from 0 and 1.
struct Poisson {
  unsigned first = 0;
  std::vector<double> sums;  ///< probability of at most `first + i`

  explicit Poisson(double mean) {
    constexpr double kDeviations = 12;
    const double reach = kDeviations * std::sqrt(mean) + 20;
    first = static_cast<unsigned>(std::max(0.0, mean - reach));
    double sum = 0;
    for (double k = first; k <= mean + reach; ++k)
      sums.push_back(sum += std::exp(k * std::log(mean) - mean - std::lgamma(k + 1)));
  }
  unsigned at(uint32_t number) const {
    const double share = (number + 0.5) * 0x1p-32;
    const auto found = std::upper_bound(sums.begin(), sums.end() - 1, share);
    return first + static_cast<unsigned>(found - sums.begin());
  }
};

}  // namespace

extern "C" {

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  return call("curandCreateGenerator", [&] { create(generator, type, false); });
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  return call("curandCreateGeneratorHost", [&] { create(generator, type, true); });
}
curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  return call("curandDestroyGenerator", [&] {
    generator_of(generator);
    const std::lock_guard lock(mutex);
    generators().erase(generator);
    delete generator;
  });
}

curandStatus_t curandGetVersion(int* version) {
  return call("curandGetVersion", [&] {
    require(version, CURAND_STATUS_OUT_OF_RANGE, "the version is NULL");
    *version = CURAND_VERSION;
  });
}
curandStatus_t curandGetProperty(libraryPropertyType type, int* value) {
  return call("curandGetProperty", [&] {
    require(value && type >= MAJOR_VERSION && type <= PATCH_LEVEL, CURAND_STATUS_OUT_OF_RANGE, "no such property");
    *value = type == MAJOR_VERSION ? CURAND_VER_MAJOR : type == MINOR_VERSION ? CURAND_VER_MINOR : CURAND_VER_PATCH;
  });
}

curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  return call("curandSetStream", [&] { generator_of(generator).stream = stream; });
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  return call("curandSetPseudoRandomGeneratorSeed", [&] {
    curandGenerator_st& g = generator_of(generator);
    g.seed = seed, g.started = false;
  });
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  return call("curandSetGeneratorOffset", [&] {
    curandGenerator_st& g = generator_of(generator);
    g.offset = offset, g.started = false;
  });
}
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
  return call("curandSetGeneratorOrdering", [&] {
    const curandGenerator_st& g = generator_of(generator);
    require(order >= CURAND_ORDERING_PSEUDO_BEST && order <= CURAND_ORDERING_PSEUDO_DYNAMIC, CURAND_STATUS_OUT_OF_RANGE,
            cat("ordering ", order, ": no such value for this generator"));
    require(order != CURAND_ORDERING_PSEUDO_SEEDED || g.sequence->wants_pairs(), CURAND_STATUS_OUT_OF_RANGE,
            "CURAND_ORDERING_PSEUDO_SEEDED is for XORWOW");
    if (order == CURAND_ORDERING_PSEUDO_SEEDED) refuse("CURAND_ORDERING_PSEUDO_SEEDED is not emulated");
  });
}
curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
  return call("curandGenerateSeeds", [&] { generator_of(generator); });
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* to, size_t count) {
  return plain("curandGenerate", generator, Draw::integer, to, count);
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* to, size_t count) {
  return plain("curandGenerateUniform", generator, Draw::uniform, to, count);
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* to, size_t count) {
  return plain("curandGenerateUniformDouble", generator, Draw::uniform_double, to, count);
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* to, size_t count, float mean, float deviation) {
  return normals("curandGenerateNormal", generator, Draw::normal, to, count, mean, deviation, false);
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* to, size_t count, double mean,
                                          double deviation) {
  return normals("curandGenerateNormalDouble", generator, Draw::normal_double, to, count, mean, deviation, false);
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* to, size_t count, float mean,
                                       float deviation) {
  return normals("curandGenerateLogNormal", generator, Draw::normal, to, count, mean, deviation, true);
}
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* to, size_t count, double mean,
                                             double deviation) {
  return normals("curandGenerateLogNormalDouble", generator, Draw::normal_double, to, count, mean, deviation, true);
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* to, size_t count, double mean) {
  constexpr const char* kName = "curandGeneratePoisson";
  return call(kName, [&] {
    require(mean > 0 && mean <= 400000, CURAND_STATUS_OUT_OF_RANGE, cat("lambda ", mean));
    const Poisson distribution(mean);
    generate(kName, generator, to, count, [&](rand::Sequence& from, std::span<unsigned> all) {
      from.fill(Draw::integer, all);
      for (unsigned& x : all) x = distribution.at(x);
    });
  });
}
curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long*, size_t) {
  return call("curandGenerateLongLong", [&] {
    generator_of(generator);
    throw Failure{CURAND_STATUS_TYPE_ERROR, "64-bit integers are for Sobol's 64-bit generators"};
  });
}

#define REFUSED(name, ...)                                           \
  curandStatus_t name(__VA_ARGS__) {                                 \
    return call(#name, [] { refuse("this call is not emulated"); }); \
  }
REFUSED(curandSetQuasiRandomGeneratorDimensions, curandGenerator_t, unsigned)
REFUSED(curandGenerateBinomial, curandGenerator_t, unsigned*, size_t, unsigned, double)
REFUSED(curandGenerateBinomialMethod, curandGenerator_t, unsigned*, size_t, unsigned, double, curandMethod_t)
REFUSED(curandCreatePoissonDistribution, double, curandDiscreteDistribution_t*)
REFUSED(curandDestroyDistribution, curandDiscreteDistribution_t)
REFUSED(curandGeneratePoissonMethod, curandGenerator_t, unsigned*, size_t, double, curandMethod_t)
REFUSED(curandGetDirectionVectors32, curandDirectionVectors32_t**, curandDirectionVectorSet_t)
REFUSED(curandGetDirectionVectors64, curandDirectionVectors64_t**, curandDirectionVectorSet_t)
REFUSED(curandGetScrambleConstants32, unsigned**)
REFUSED(curandGetScrambleConstants64, unsigned long long**)

}  // extern "C"
