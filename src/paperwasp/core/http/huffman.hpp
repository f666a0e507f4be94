// The Huffman code of header strings in HTTP/2: RFC 7541, section 5.2 and appendix B. Free functions of bytes: any
// thread.
//
// The code is canonical: the lengths of the codes, of 5 to 30 bits, say which they are. Strings are padded to whole
// bytes by the beginning of the code of the symbol 256 (EOS), which is all ones and stands in no string itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace paperwasp {

// How many bytes huffman_encode makes of these.
size_t huffman_size(const uint8_t* from, size_t size);

// Appends the encoded bytes to `to`.
void huffman_encode(const uint8_t* from, size_t size, std::string& to);

// Appends the decoded bytes to `to`, at most 8/5 of `size`. False: it is damaged (EOS in it, or padded by something
// else than at most seven ones), and what is appended has no meaning.
bool huffman_decode(const uint8_t* from, size_t size, std::string& to);

}  // namespace paperwasp
