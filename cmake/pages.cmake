# Writes OUT, a source that holds the files of FOLDER:  cmake -DFOLDER=... -DOUT=... -P pages.cmake
file(GLOB files ${FOLDER}/*.html ${FOLDER}/*.css ${FOLDER}/*.js ${FOLDER}/*.svg)
set(text "#include \"server/pages.h\"\n\n")
set(table "")
set(index 0)
foreach(file ${files})
  get_filename_component(name ${file} NAME)
  string(APPEND text "asm(\".section .rodata\\npage_${index}: .incbin \\\"${file}\\\"\\npage_${index}_end:\\n.previous\");\n"
                     "extern \"C\" const char page_${index}[] __attribute__((visibility(\"hidden\"))),\n"
                     "    page_${index}_end[] __attribute__((visibility(\"hidden\")));\n")
  string(APPEND table "      {\"${name}\", {page_${index}, static_cast<size_t>(page_${index}_end - page_${index})}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT} "${text}\nnamespace sfumato::server {\n\nstd::span<const Page> pages() {\n  static const Page all[] = {\n${table}  };\n  return all;\n}\n\n}  // namespace sfumato::server\n")
