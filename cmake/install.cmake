# SPDX-License-Identifier: Apache-2.0
# cmake --install: libweft.so, the headers as include/weft/FOLDER/NOUN.h, and what find_package(weft) reads.
#   find_package(weft REQUIRED)
#   target_link_libraries(my_training PRIVATE weft::weft)
include(CMakePackageConfigHelpers)

# All rooms as one library, so that each program does not carry every kernel.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/libweft.cpp CONTENT "// CMake wants a source of each library. Those of libweft.so are in its rooms.\n")
add_library(weft_weft SHARED ${PROJECT_BINARY_DIR}/libweft.cpp)
target_link_options(weft_weft PRIVATE -Wl,-Bsymbolic-functions)
target_link_libraries(weft_weft PRIVATE weft::support PUBLIC Threads::Threads OpenMP::OpenMP_CXX $<BUILD_INTERFACE:$<LINK_ONLY:${WEFT_CUDART_LIBRARY}>>)
target_compile_features(weft_weft PUBLIC cxx_std_20)
set_target_properties(weft_weft PROPERTIES BUILD_WITH_INSTALL_RPATH ON OUTPUT_NAME weft EXPORT_NAME weft LINKER_LANGUAGE CXX
  LINK_LIBRARY_OVERRIDE WHOLE_ARCHIVE,weft_kernels,weft_core,weft_io,weft_nn,weft_optim,weft_data,weft_dist,weft_train,weft_support
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
add_library(weft::weft ALIAS weft_weft)

# In the tree, headers include each other as "core/tensor.h"; installed ones as <weft/core/tensor.h> (cmake/installed.cmake).
target_include_directories(weft_weft PUBLIC
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR};${PROJECT_SOURCE_DIR}/include>" $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(DIRECTORY include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
foreach(folder kernels core io nn optim data dist train apps/support)
  get_filename_component(parent weft/${folder} DIRECTORY)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${parent} FILES_MATCHING PATTERN "*.h"
          # Below kernels/ the contracts are public, the devices behind them are not.
          PATTERN "kernels/cpu" EXCLUDE PATTERN "kernels/cuda" EXCLUDE
          PATTERN "kernels/engines" EXCLUDE PATTERN "kernels/ladder" EXCLUDE
          PATTERN "hdf5_handle.h" EXCLUDE PATTERN "hdf5_library.h" EXCLUDE)  # need HDF5's own headers
endforeach()

# What kernels of somebody's own are written with (cmake/weft_kernel.cmake): the helpers of Weft's.
install(DIRECTORY kernels/cuda DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft/kernels FILES_MATCHING PATTERN "*.cuh")

# Programs to begin with.
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)

install(TARGETS weft_weft EXPORT weft-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# CUDA's runtime comes along, since no distribution has it: libweft.so cannot be loaded without, not even for the CPU.
if(WEFT_HAVE_CUDA AND WEFT_CUDART STREQUAL "shared")
  file(REAL_PATH ${CUDA_cudart_LIBRARY} cudart)
  install(FILES ${cudart} DESTINATION ${CMAKE_INSTALL_LIBDIR}/weft RENAME libcudart.so.${CUDAToolkit_VERSION_MAJOR})
endif()
set(weft_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(EXPORT weft-targets NAMESPACE weft:: DESTINATION ${weft_cmake_folder})
configure_package_config_file(cmake/weft-config.cmake.in ${PROJECT_BINARY_DIR}/weft-config.cmake
                              INSTALL_DESTINATION ${weft_cmake_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weft-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weft-config.cmake ${PROJECT_BINARY_DIR}/weft-config-version.cmake cmake/weft_kernel.cmake
        DESTINATION ${weft_cmake_folder})

option(WEFT_INSTALL_STRIPPED "Installed libraries and programs have no debug lines" ON)
install(CODE "
  set(PREFIX \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  set(INCLUDES ${CMAKE_INSTALL_INCLUDEDIR})
  set(LIBRARIES ${CMAKE_INSTALL_LIBDIR})
  set(PROGRAMS ${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_LIBEXECDIR}/weft)
  set(VERSION ${PROJECT_VERSION})
  set(STRIP \"$<$<BOOL:${WEFT_INSTALL_STRIPPED}>:${CMAKE_STRIP}>\")
  include(${PROJECT_SOURCE_DIR}/cmake/installed.cmake)
")

# cpack -G DEB in the build folder: one Debian package of what is installed. It depends on a compiler, and on the libraries that
# the programs and libweft.so were linked with.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "g++, cmake, make")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The Weft developers")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/deb_size.cmake)
include(CPack)
