# SPDX-License-Identifier: Apache-2.0
# weft_add_kernel(TARGET NAME.cu): adds CUDA kernels of your own to a program that links weft::weft, see docs/your_own_kernel.md.
# NAME.h beside it declares them by WEFT_KERNEL. NAME.cu is compiled by nvcc for the device cuda; NAME.cpp, if there is one, has
# them for the device cpu. Without nvcc or NAME.cpp a call that needs it is an error, which names the kernel and the cure.

# A macro: languages can be enabled in a file's own scope only.
macro(weft_add_kernel target source)
  if(WEFT_HAVE_CUDA AND NOT CMAKE_CUDA_COMPILER)
    include(CheckLanguage)
    set(CMAKE_CUDA_ARCHITECTURES ${WEFT_CUDA_ARCHITECTURES})
    set(CMAKE_CUDA_RUNTIME_LIBRARY ${WEFT_CUDART})
    find_program(WEFT_NVCC nvcc HINTS /usr/local/cuda/bin)
    if(WEFT_NVCC AND NOT DEFINED ENV{CUDACXX})
      set(CMAKE_CUDA_COMPILER ${WEFT_NVCC})
    endif()
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      enable_language(CUDA)
    endif()
  endif()
  weft_add_kernel_to(${target} ${source})
endmacro()

function(weft_add_kernel_to target source)
  get_filename_component(source ${source} ABSOLUTE)
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(name ${source} NAME_WE)
  foreach(file ${source} ${folder}/${name}.h)
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "weft_add_kernel(${target} …): there is no ${file}")
    endif()
  endforeach()

  # weft_part(DEVICE SOURCE): an object of the target, with the target's own include folders.
  macro(weft_part device file)
    set(part ${target}_${name}_${device})
    add_library(${part} OBJECT ${file})
    target_compile_features(${part} PRIVATE cxx_std_20)
    target_include_directories(${part} PRIVATE ${folder} $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>
                               $<TARGET_PROPERTY:weft::weft,INTERFACE_INCLUDE_DIRECTORIES>)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${part}>)
  endmacro()
  macro(weft_no_part device why)
    set(stub ${CMAKE_CURRENT_BINARY_DIR}/weft_kernels/${target}_${name}_no_${device}.cpp)
    file(CONFIGURE OUTPUT ${stub} CONTENT "#include <weft/kernels/cuda/no_device.cuh>\n#include \"${folder}/${name}.h\"\n")
    weft_part(${device} ${stub})
    target_compile_definitions(${part} PRIVATE WEFT_DEVICE=${device} "WEFT_NO_DEVICE=\": ${why}\"")
  endmacro()

  if(EXISTS ${folder}/${name}.cpp)
    weft_part(cpu ${folder}/${name}.cpp)
  else()
    weft_no_part(cpu "there is no version for the device cpu. Write ${name}.cpp beside ${name}.cu, or use another device")
  endif()

  if(CMAKE_CUDA_COMPILER AND WEFT_HAVE_CUDA)
    weft_part(cuda ${source})
    set_target_properties(${part} PROPERTIES CUDA_ARCHITECTURES "${WEFT_CUDA_ARCHITECTURES}" CUDA_RUNTIME_LIBRARY ${WEFT_CUDART})
    target_compile_options(${part} PRIVATE -std=c++20 --expt-relaxed-constexpr --extended-lambda -lineinfo)
    find_package(CUDAToolkit REQUIRED)
    # As a property, which goes with either form of target_link_libraries.
    set_property(TARGET ${target} APPEND PROPERTY LINK_LIBRARIES CUDA::cudart$<$<STREQUAL:${WEFT_CUDART},static>:_static>)
  else()
    weft_no_part(cuda "this program was built without CUDA. Configure where nvcc is found (CUDACXX), with a Weft that was, too")
  endif()
endfunction()
