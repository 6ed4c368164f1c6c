# The page (user/page/web) as an array in C, and its content security policy: cmake -DIN=page.html -DOUT=FILE -P ...
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(READ ${IN} text LIMIT 1000000)
if(NOT text MATCHES "http-equiv=\"Content-Security-Policy\" content=\"([^\"\\\\]*)\"")
  message(FATAL_ERROR "${IN} has no content security policy")
endif()
file(WRITE ${OUT}
     "const unsigned char xsp_template_bytes[] = {${bytes}0};\n"
     "const char xsp_template_policy[] = \"${CMAKE_MATCH_1}\";\n")
