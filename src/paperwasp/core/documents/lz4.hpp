// LZ4 blocks: the format without frames, lengths and checksums. Those are the matter of who keeps the blocks.
//
// Specification: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md. The plain twin is in tests/oracles/lz4_block.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace paperwasp {

// No block makes more bytes of one byte: whoever reads a size from a file checks it by this before making room.
constexpr size_t LZ4_MOST_BYTES_OF_ONE = 255;

// Appends the block of `size` bytes to `to`. `size` is below 2^31.
void lz4_compress(const uint8_t* from, size_t size, std::string& to);

// Makes exactly `to_size` bytes of a block. False: it is damaged, or makes another number of bytes. Reads nothing
// outside the block and writes nothing outside `to`, whatever the block says.
bool lz4_decompress(const uint8_t* block, size_t size, uint8_t* to, size_t to_size);

}  // namespace paperwasp
