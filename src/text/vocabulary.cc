#include "text/vocabulary.h"

#include <zlib.h>

#include "base/check.h"

// SFUMATO_CLIP_MERGES is the path of bpe_simple_vocab_16e6.txt.gz, given by the build.
asm(".section .rodata\n"
    ".global sfumato_clip_merges_begin\n"
    ".global sfumato_clip_merges_end\n"
    "sfumato_clip_merges_begin:\n"
    ".incbin \"" SFUMATO_CLIP_MERGES
    "\"\n"
    "sfumato_clip_merges_end:\n"
    ".byte 0\n"
    ".section .text\n");
extern "C" const unsigned char sfumato_clip_merges_begin[], sfumato_clip_merges_end[];

namespace sfumato::text {

std::string clip_merges() {
  z_stream stream = {};
  stream.next_in = const_cast<unsigned char*>(sfumato_clip_merges_begin);
  stream.avail_in = static_cast<unsigned>(sfumato_clip_merges_end - sfumato_clip_merges_begin);
  CHECK(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK);
  std::string text;
  char part[1 << 16];
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<unsigned char*>(part);
    stream.avail_out = sizeof part;
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(part, sizeof part - stream.avail_out);
  }
  inflateEnd(&stream);
  CHECK(state == Z_STREAM_END, "the built-in vocabulary is damaged");
  return text;
}

}  // namespace sfumato::text
