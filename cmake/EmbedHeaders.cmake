# lathe_embed_headers(TARGET OUTPUT file...): OUTPUT.inc in the target's binary folder holds an
# initialiser {"name", "text"}, for each file, for a std::map.
function(lathe_embed_headers target output)
  set(table "")
  foreach(file IN LISTS ARGN)
    get_filename_component(name ${file} NAME)
    set(text ${CMAKE_CURRENT_BINARY_DIR}/${output}/${name}.inc)
    add_custom_command(OUTPUT ${text} DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake
      COMMAND ${CMAKE_COMMAND} -DINPUTS=${file} -DOUTPUT=${text} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake)
    target_sources(${target} PRIVATE ${text})
    string(APPEND table "{\"${name}\",\n#include \"${text}\"\n},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${output}.inc CONTENT "${table}" @ONLY)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()
