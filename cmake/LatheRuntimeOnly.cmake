# Runs programs, compiles none: lathe::runtime and the `lathe` command from CMake and a C++ compiler
# alone. No LLVM, no oneDNN (so no programs of the cpu backend). nlohmann_json and CLI11 are headers;
# fmt, oniguruma and utf8proc are libraries; from the system or below CMAKE_PREFIX_PATH (include/ and
# lib/, as `scripts/gpu-bundle --dependencies` lays them out).
option(LATHE_RUNTIME_ONLY "build what runs compiled programs, without LLVM and oneDNN" OFF)

function(lathe_found_or_stop what variable)
  if(NOT ${variable})
    message(FATAL_ERROR "${what} was not found: install it or name a folder that holds it below "
      "include/ and lib/ with -DCMAKE_PREFIX_PATH=")
  endif()
endfunction()

function(lathe_headers_of target header)
  string(MAKE_C_IDENTIFIER "LATHE_INCLUDE_${header}" folder)
  find_path(${folder} ${header})
  lathe_found_or_stop(${header} ${folder})
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${${folder}})
endfunction()

function(lathe_library_of target header library)
  lathe_headers_of(${target} ${header})
  string(MAKE_C_IDENTIFIER "LATHE_LIBRARY_${header}" file)
  find_library(${file} ${library})
  lathe_found_or_stop("the library ${library}" ${file})
  target_link_libraries(${target} INTERFACE ${${file}})
endfunction()

if(LATHE_RUNTIME_ONLY)
  lathe_headers_of(nlohmann_json::nlohmann_json nlohmann/json.hpp)
  lathe_headers_of(CLI11::CLI11 CLI/CLI.hpp)
  lathe_library_of(fmt::fmt fmt/format.h fmt)
  lathe_library_of(PkgConfig::ONIG oniguruma.h onig)
  lathe_library_of(PkgConfig::UTF8PROC utf8proc.h utf8proc)
endif()
