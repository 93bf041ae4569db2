# Compiler, warnings, sanitizers, ccache: the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET default) # never hidden where MLIR types cross libraries
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../lib")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
# A runtime alone is built by whatever compiler its machine has, warnings of its own included.
if(NOT LATHE_RUNTIME_ONLY)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND NOT LATHE_RUNTIME_ONLY)
  add_link_options(--ld-path=/usr/lib/llvm-22/bin/ld.lld)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # gcc 12 reports false positives of these in std::string and std::vector at -O2.
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow)
  # How far a loop is unrolled is said to clang alone.
  add_compile_options(-Wno-unknown-pragmas)
  # Kernels say themselves where a product and a sum are rounded once; gcc would join the others.
  add_compile_options(-ffp-contract=off)
endif()

set(LATHE_SANITIZE "" CACHE STRING "sanitizers, for example address,undefined")
if(LATHE_SANITIZE)
  # Generated code has no type in front of its entry, where the check of calls would look for one.
  add_compile_options(-fsanitize=${LATHE_SANITIZE} -fno-sanitize=vptr,function
                      -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${LATHE_SANITIZE})
endif()

# scripts/coverage: the layers and tools count which of their lines run. What runs kernels stays
# optimized, as the tests wait for it.
option(LATHE_COVERAGE "count the lines that run (clang; preset coverage)" OFF)
function(lathe_count_lines target)
  if(LATHE_COVERAGE)
    target_compile_options(${target} PRIVATE -fprofile-instr-generate -fcoverage-mapping ${ARGN})
    target_link_options(${target} PRIVATE -fprofile-instr-generate)
  endif()
endfunction()

option(LATHE_FUZZ "fuzz targets with libFuzzer (clang; preset fuzz)" OFF)
if(LATHE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

include(CMakeDependentOption)
cmake_dependent_option(LATHE_PCH "precompile headers that many files share" ON "NOT LATHE_RUNTIME_ONLY" OFF)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers hit the cache only with these. What a file includes is read from what the
  # compiler writes for ninja: without it a file that is not in the cache goes through the
  # preprocessor first, which takes a fifth of the time.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=true
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()
