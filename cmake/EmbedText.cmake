# Joins text files into one C++ string literal: cmake -DINPUTS=a,b -DOUTPUT=x.inc -P EmbedText.cmake
string(REPLACE "," ";" inputs "${INPUTS}")
set(text "")
foreach(file IN LISTS inputs)
  file(READ ${file} part)
  string(APPEND text "${part}\n")
endforeach()
file(WRITE ${OUTPUT} "R\"lathe(${text})lathe\"\n")
