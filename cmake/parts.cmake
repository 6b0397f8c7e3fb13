# SPDX-License-Identifier: Apache-2.0
# Finds the parts that Weft is built from. A missing optional part is replaced by a stub file whose error says how to
# build it in; a missing required part stops here with its Debian package.

set(WEFT_PARTS "" CACHE INTERNAL "rows of the table of parts")
set(WEFT_WITHOUT "" CACHE STRING "Optional parts to leave out although they are there, by their names in the table, or: all")

set(optional_parts oneDNN OpenBLAS cuBLASLt cuDNN HDF5 libjpeg-turbo libspng zlib libzstd libzip yaml-cpp utf8proc libsodium Gloo MPI NCCL)
foreach(part ${WEFT_WITHOUT})
  if(NOT part IN_LIST optional_parts AND NOT part STREQUAL "all")
    list(JOIN optional_parts ", " known)
    message(FATAL_ERROR "weft: WEFT_WITHOUT: expected all or some of ${known}, got ${part}")
  endif()
endforeach()

# weft_leaves_out(OUT NAME): does WEFT_WITHOUT ask for the stub of this part?
function(weft_leaves_out out name)
  if("${name}" IN_LIST WEFT_WITHOUT OR ("all" IN_LIST WEFT_WITHOUT AND "${name}" IN_LIST optional_parts))
    set(${out} TRUE PARENT_SCOPE)
  else()
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()

# weft_find_library(NAME OUT INCLUDE_VARIABLE HEADER LIBRARY_VARIABLE names… [PATH_SUFFIXES …]): sets OUT to whether header
# and library are there and wanted. Needs no pkg-config and no package files, so a plain folder in CMAKE_PREFIX_PATH does.
function(weft_find_library name out include header library)
  cmake_parse_arguments(arg "" "" "PATH_SUFFIXES" ${ARGN})
  find_path(${include} ${header} PATH_SUFFIXES ${arg_PATH_SUFFIXES})
  find_library(${library} NAMES ${arg_UNPARSED_ARGUMENTS} PATH_SUFFIXES ${arg_PATH_SUFFIXES})
  weft_leaves_out(left_out ${name})
  if(${include} AND ${library} AND NOT left_out)
    set(${out} TRUE PARENT_SCOPE)
  else()
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()

# weft_soname(FILE FOLDER LIBRARY): the name by which programs that link this shared library load it, and where it lies under that name.
# FILE is empty where that cannot be said: a static library, a linker script.
function(weft_soname file folder library)
  set(${file} "" PARENT_SCOPE)
  set(${folder} "" PARENT_SCOPE)
  if(NOT CMAKE_READELF OR NOT library MATCHES "\\.so(\\.|$)")
    return()
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${CMAKE_READELF} -d ${library} OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT text MATCHES "\\(SONAME\\)[^[]*\\[([^]]+)\\]")
    return()
  endif()
  set(name ${CMAKE_MATCH_1})
  set(${file} ${name} PARENT_SCOPE)
  get_filename_component(behind_links ${library} REALPATH)
  foreach(place ${library} ${behind_links})
    get_filename_component(place ${place} DIRECTORY)
    if(EXISTS ${place}/${name})
      set(${folder} ${place} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# weft_part(NAME found? "what it gives" "cure"): one row of the table.
function(weft_part name found gives cure)
  if(found)
    set(row "found  |${name}|${gives}|")
  else()
    weft_leaves_out(left_out ${name})
    if(left_out)
      list(JOIN WEFT_WITHOUT ", " without)  # a row is an element of a list itself
      set(cure "configure without ${name} in WEFT_WITHOUT (${without})")
    endif()
    set(row "MISSING|${name}|${gives}|${cure}")
  endif()
  set(WEFT_PARTS "${WEFT_PARTS};${row}" CACHE INTERNAL "")
endfunction()

function(weft_require name found package)
  if(NOT found)
    message(FATAL_ERROR "weft: ${name} is required and was not found. On Debian: apt-get install ${package}")
  endif()
endfunction()

function(weft_print_parts)
  message(STATUS "")
  message(STATUS "weft ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}: parts")
  foreach(row ${WEFT_PARTS})
    string(REPLACE "|" ";" cells "${row}")
    list(GET cells 0 state)
    list(GET cells 1 part)
    list(GET cells 2 gives)
    list(GET cells 3 cure)
    string(SUBSTRING "${part}                " 0 16 part)
    if(cure)
      message(STATUS "  ${state}  ${part} ${gives}. Cure: ${cure}")
    else()
      message(STATUS "  ${state}  ${part} ${gives}")
    endif()
  endforeach()
  message(STATUS "")
endfunction()

find_package(Threads REQUIRED)

find_package(OpenMP COMPONENTS CXX)
weft_require("OpenMP" "${OpenMP_CXX_FOUND}" "g++")

find_package(Boost COMPONENTS context)
weft_require("Boost.Context" "${Boost_CONTEXT_FOUND}" "libboost-context-dev")

# Debian's dnnl-config.cmake insists on OpenCL, which Weft does not use: look for the library itself.
weft_find_library(oneDNN WEFT_HAVE_DNNL WEFT_DNNL_INCLUDE oneapi/dnnl/dnnl.hpp WEFT_DNNL dnnl)
weft_part("oneDNN" "${WEFT_HAVE_DNNL}" "fast CPU convolution and bf16 matmul" "apt-get install libdnnl-dev")

weft_find_library(OpenBLAS WEFT_HAVE_OPENBLAS WEFT_CBLAS_INCLUDE cblas.h WEFT_OPENBLAS openblas
  PATH_SUFFIXES openblas openblas-openmp ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp)
weft_part("OpenBLAS" "${WEFT_HAVE_OPENBLAS}" "fast CPU matmul" "apt-get install libopenblas-openmp-dev")

set(WEFT_HAVE_CUDA FALSE)
if(NOT WEFT_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  set(CMAKE_CUDA_ARCHITECTURES ${WEFT_CUDA_ARCHITECTURES})
  if(NOT WEFT_CUDART MATCHES "^(shared|static)$")
    message(FATAL_ERROR "weft: WEFT_CUDART: expected shared or static, got ${WEFT_CUDART}")
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY ${WEFT_CUDART})
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    # CMake 3.25 does not know nvcc's flag for C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(WEFT_HAVE_CUDA TRUE)
  elseif(WEFT_CUDA STREQUAL "ON")
    message(FATAL_ERROR "weft: WEFT_CUDA=ON, but nvcc was not found. Set CUDACXX or -DCMAKE_CUDA_COMPILER=…/nvcc")
  endif()
endif()
string(REPLACE ";" ", " architectures "${WEFT_CUDA_ARCHITECTURES}")
weft_part("CUDA" "${WEFT_HAVE_CUDA}" "--device cuda (kernels for ${architectures})"
          "install the CUDA Toolkit 12.x or 13.x, or set CUDACXX to its nvcc")

# tools/gpu_check fills these in.
set(WEFT_CUBLASLT_ROOT "" CACHE PATH "Folder that holds cuBLASLt's include/ and lib/, where the toolkit has none")
set(WEFT_CUDNN_ROOT "" CACHE PATH "Folder that holds cuDNN's include/ and lib/")
set(WEFT_NCCL_ROOT "" CACHE PATH "Folder that holds NCCL's include/ and lib/")

# The vendor engines need headers alone: their libraries are loaded when a call first needs them. The folders are where
# they are looked for behind the loader's own (LD_LIBRARY_PATH, ld.so.conf).
set(WEFT_HAVE_CUBLASLT FALSE)
set(WEFT_HAVE_CUDNN FALSE)
if(WEFT_HAVE_CUDA)
  find_path(WEFT_CUBLASLT_INCLUDE cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${WEFT_CUBLASLT_ROOT}/include)
  find_library(WEFT_CUBLASLT NAMES cublasLt libcublasLt.so.13 libcublasLt.so.12 HINTS ${CUDAToolkit_LIBRARY_DIR} ${WEFT_CUBLASLT_ROOT}
               PATH_SUFFIXES lib lib64)
  weft_leaves_out(left_out cuBLASLt)
  if(WEFT_CUBLASLT_INCLUDE AND NOT left_out)
    set(WEFT_HAVE_CUBLASLT TRUE)
  endif()
  find_path(WEFT_CUDNN_INCLUDE cudnn_graph.h HINTS ${WEFT_CUDNN_ROOT}/include ${CUDAToolkit_INCLUDE_DIRS})
  find_library(WEFT_CUDNN NAMES cudnn libcudnn.so.9 HINTS ${WEFT_CUDNN_ROOT} ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
  weft_leaves_out(left_out cuDNN)
  if(WEFT_CUDNN_INCLUDE AND NOT left_out)  # cudnn_graph.h came with cuDNN 9
    set(WEFT_HAVE_CUDNN TRUE)
  endif()
endif()
weft_part("cuBLASLt" "${WEFT_HAVE_CUBLASLT}" "matmul of WEFT_ENGINE=vendor and auto" "with CUDA: install the toolkit's cuBLAS headers, or set WEFT_CUBLASLT_ROOT")
weft_part("cuDNN" "${WEFT_HAVE_CUDNN}" "conv2d of WEFT_ENGINE=vendor and auto" "with CUDA: install cuDNN 9, or set WEFT_CUDNN_ROOT")

weft_find_library(HDF5 WEFT_HAVE_HDF5 WEFT_HDF5_INCLUDE hdf5.h WEFT_HDF5 hdf5 hdf5_serial PATH_SUFFIXES hdf5/serial)
# A shared HDF5 is loaded at its first use (data/hdf5_library.cpp); any other is linked.
set(WEFT_HDF5_FILE "")
if(WEFT_HAVE_HDF5)
  weft_soname(WEFT_HDF5_FILE WEFT_HDF5_FOLDER ${WEFT_HDF5})
endif()
weft_part("HDF5" "${WEFT_HAVE_HDF5}" "checkpoints (.h5), pictures in HDF5 files" "apt-get install libhdf5-dev")

find_package(nlohmann_json 3.10 QUIET)
weft_require("nlohmann-json" "${nlohmann_json_FOUND}" "nlohmann-json3-dev")
find_package(fmt QUIET)
weft_require("fmt" "${fmt_FOUND}" "libfmt-dev")

weft_find_library(libjpeg-turbo WEFT_HAVE_JPEG WEFT_JPEG_INCLUDE jpeglib.h WEFT_JPEG jpeg)
weft_part("libjpeg-turbo" "${WEFT_HAVE_JPEG}" "JPEG pictures" "apt-get install libjpeg62-turbo-dev")
weft_find_library(libspng WEFT_HAVE_SPNG WEFT_SPNG_INCLUDE spng.h WEFT_SPNG spng)
weft_part("libspng" "${WEFT_HAVE_SPNG}" "PNG pictures" "apt-get install libspng-dev")
weft_find_library(zlib WEFT_HAVE_ZLIB WEFT_ZLIB_INCLUDE zlib.h WEFT_ZLIB z)
weft_part("zlib" "${WEFT_HAVE_ZLIB}" ".gz data files" "apt-get install zlib1g-dev")

weft_find_library(libzstd WEFT_HAVE_ZSTD WEFT_ZSTD_INCLUDE zstd.h WEFT_ZSTD zstd)
if(WEFT_HAVE_CUDA AND WEFT_HAVE_ZSTD)
  set(WEFT_HAVE_EMULATOR TRUE)
else()
  set(WEFT_HAVE_EMULATOR FALSE)
endif()
weft_part("libzstd" "${WEFT_HAVE_EMULATOR}" "weft-emulate: CUDA programs without a GPU (needs CUDA's headers, too)" "apt-get install libzstd-dev")

weft_find_library(libzip WEFT_HAVE_ZIP WEFT_ZIP_INCLUDE zip.h WEFT_ZIP zip)
weft_part("libzip" "${WEFT_HAVE_ZIP}" "PyTorch's files (.pt, .pth)" "apt-get install libzip-dev")

weft_find_library(yaml-cpp WEFT_HAVE_YAML WEFT_YAML_INCLUDE yaml-cpp/yaml.h WEFT_YAML yaml-cpp)
weft_part("yaml-cpp" "${WEFT_HAVE_YAML}" "configurations (.yaml)" "apt-get install libyaml-cpp-dev")

weft_find_library(utf8proc WEFT_HAVE_UTF8PROC WEFT_UTF8PROC_INCLUDE utf8proc.h WEFT_UTF8PROC utf8proc)
weft_part("utf8proc" "${WEFT_HAVE_UTF8PROC}" "words of any script" "apt-get install libutf8proc-dev")

weft_find_library(libsodium WEFT_HAVE_SODIUM WEFT_SODIUM_INCLUDE sodium.h WEFT_SODIUM sodium)
weft_part("libsodium" "${WEFT_HAVE_SODIUM}" "ranks that find each other over TCP" "apt-get install libsodium-dev")
weft_find_library(Gloo WEFT_HAVE_GLOO WEFT_GLOO_INCLUDE gloo/rendezvous/context.h WEFT_GLOO gloo)
weft_part("Gloo" "${WEFT_HAVE_GLOO}" "process groups over TCP" "apt-get install libgloo-dev")

find_package(MPI COMPONENTS C QUIET)
weft_leaves_out(left_out MPI)
set(WEFT_HAVE_MPI FALSE)
if(MPI_C_FOUND AND NOT left_out)
  set(WEFT_HAVE_MPI TRUE)
endif()
weft_part("MPI" "${WEFT_HAVE_MPI}" "process groups over MPI" "apt-get install libopenmpi-dev openmpi-bin")

# NCCL's header is enough: its library is loaded when a group needs it, by the loader's own search or from where it was
# found (a python package's folder is on no loader's path).
set(WEFT_HAVE_NCCL FALSE)
if(WEFT_HAVE_CUDA)
  find_path(WEFT_NCCL_INCLUDE nccl.h HINTS ${WEFT_NCCL_ROOT}/include ${CUDAToolkit_INCLUDE_DIRS})
  find_library(WEFT_NCCL NAMES nccl libnccl.so.2 HINTS ${WEFT_NCCL_ROOT} ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
  weft_leaves_out(left_out NCCL)
  if(WEFT_NCCL_INCLUDE AND NOT left_out)
    set(WEFT_HAVE_NCCL TRUE)
  endif()
endif()
weft_part("NCCL" "${WEFT_HAVE_NCCL}" "process groups of GPUs" "with CUDA: install NCCL, or set WEFT_NCCL_ROOT")

find_package(CLI11 QUIET)
weft_require("CLI11" "${CLI11_FOUND}" "libcli11-dev")
find_path(WEFT_TOML_INCLUDE toml++/toml.h)
weft_require("toml++" "${WEFT_TOML_INCLUDE}" "libtomlplusplus-dev")
if(WEFT_BUILD_TESTS)
  find_package(GTest QUIET)
  weft_require("GoogleTest" "${GTest_FOUND}" "libgtest-dev libgmock-dev")
  include(GoogleTest)
endif()
