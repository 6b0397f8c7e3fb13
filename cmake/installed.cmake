# SPDX-License-Identifier: Apache-2.0
# Runs at the end of `cmake --install`, with PREFIX (DESTDIR before it), INCLUDES, LIBRARIES, STRIP and CUDA_LIBRARIES set:
# makes what was installed free of this build's folders, of its include style, and of debug lines.
set(targets ${PREFIX}/${LIBRARIES}/cmake/weft/weft-targets.cmake)

# Headers: "core/tensor.h" becomes <weft/core/tensor.h>, so that a program may have a core/tensor.h of its own.
file(GLOB_RECURSE headers ${PREFIX}/${INCLUDES}/weft/*.h ${PREFIX}/${INCLUDES}/weft/*.cuh ${PREFIX}/${INCLUDES}/weft/*.cu)
foreach(header ${headers})
  file(READ ${header} text)
  string(REGEX REPLACE "(#[ \t]*include )\"((apps|core|data|dist|emulator|io|kernels|nn|optim|train)/[^\"]+)\"" "\\1<weft/\\2>" changed "${text}")
  if(NOT changed STREQUAL text)
    file(WRITE ${header} "${changed}")
  endif()
endforeach()

# Libraries that were found by their paths: weft-config.cmake finds them again by their names, where the installation is used.
file(READ ${targets} text)
string(REGEX MATCHALL "/[^;>\" ]*/lib[^/;>\" ]+\\.(so|a)" paths "${text}")
list(REMOVE_DUPLICATES paths)
set(names "")
foreach(path ${paths})
  get_filename_component(name ${path} NAME)
  string(REGEX REPLACE "^lib(.+)\\.(so|a)$" "\\1" name ${name})
  string(REPLACE "${path}" "\${WEFT_LIBRARY_${name}}" text "${text}")
  list(APPEND names ${name})
endforeach()
file(WRITE ${targets} "${text}")
file(WRITE ${PREFIX}/${LIBRARIES}/cmake/weft/weft-libraries.cmake "set(weft_libraries ${names})\n")

# For builds without CMake: `g++ -std=c++20 train.cpp $(pkg-config --cflags --libs weft)`.
list(TRANSFORM names PREPEND -l)
list(JOIN names " " names)
file(RELATIVE_PATH up ${PREFIX}/${LIBRARIES}/pkgconfig ${PREFIX})
string(REGEX REPLACE "/$" "" up "${up}")
file(WRITE ${PREFIX}/${LIBRARIES}/pkgconfig/weft.pc "prefix=\${pcfiledir}/${up}
Name: weft
Description: Deep learning in C++20 and CUDA
Version: ${VERSION}
Cflags: -I\${prefix}/${INCLUDES} -fopenmp
Libs: -L\${prefix}/${LIBRARIES} -Wl,--start-group -lweft_support -lweft_train -lweft_dist -lweft_data -lweft_optim -lweft_nn -lweft_io -lweft_core -lweft_kernels -Wl,--end-group -lboost_context -lfmt ${names} ${CUDA_LIBRARIES} -fopenmp -lpthread -ldl
")

# Errors name their place without debug lines, which are nine tenths of the bytes.
if(STRIP)
  file(GLOB archives ${PREFIX}/${LIBRARIES}/libweft_*.a)
  file(GLOB programs ${PREFIX}/${PROGRAMS}/*)
  foreach(file ${archives} ${programs})
    file(READ ${file} magic LIMIT 4 HEX)
    if(file MATCHES "\\.a$" OR magic STREQUAL "7f454c46")  # ELF; the others are scripts
      execute_process(COMMAND ${STRIP} --strip-debug ${file})
    endif()
  endforeach()
endif()
