// The loops over accumulators: see accumulators.hpp.
#include "rank/accumulators.hpp"

#include "clones.hpp"

namespace paperwasp {
namespace {

PAPERWASP_CLONES void weigh_block(const Saturation& s, const uint32_t* frequencies, const uint32_t* lengths, float* weights) {
    const float numerator = s.numerator, constant = s.constant, slope = s.slope;
    for (uint32_t i = 0; i < BLOCK; ++i) {
        const auto f = static_cast<float>(static_cast<int32_t>(frequencies[i]));
        weights[i] = numerator * f / (f + constant + slope * static_cast<float>(static_cast<int32_t>(lengths[i])));
    }
}

// How many blocks at the beginning of so many have no score above `limit`.
PAPERWASP_CLONES size_t blocks_below(const float* scores, size_t blocks, float limit) {
    size_t block = 0;
    for (; block < blocks; ++block) {
        const float* of_block = scores + block * BLOCK;
        int32_t any = 0;
        for (size_t i = 0; i < BLOCK; ++i) any |= of_block[i] > limit;
        if (any != 0) break;
    }
    return block;
}

}  // namespace

void Saturation::weigh(const uint32_t* frequencies, const uint32_t* lengths, float* weights) const {
    weigh_block(*this, frequencies, lengths, weights);
}

size_t Accumulators::take_noted(float limit) {
    float* scores = scores_.data();
    size_t count = 0;
    for (size_t i = 0; i < noted_count_; ++i) {
        const uint32_t document = noted_[i];
        const float score = scores[document];
        above_[count] = {document, score};
        count += score > limit;
        scores[document] = 0;  // so that it is taken once
    }
    std::sort(above_.begin(), above_.begin() + static_cast<ptrdiff_t>(count),
              [](const Above& a, const Above& b) { return a.document < b.document; });
    return count;
}

size_t Accumulators::take_piece(uint32_t from, float limit) {
    float* scores = scores_.data();
    const uint32_t to = std::min(from + PIECE, documents_);
    const size_t blocks = (to - from + BLOCK - 1) / BLOCK;  // the last one may reach beyond, where all is zero
    size_t count = 0;
    for (size_t block = 0;; ++block) {
        block += blocks_below(scores + from + block * BLOCK, blocks - block, limit);
        if (block == blocks) break;
        const uint32_t first = from + static_cast<uint32_t>(block) * BLOCK;
        for (uint32_t i = first; i < first + BLOCK; ++i) {
            above_[count] = {i, scores[i]};
            count += scores[i] > limit;
        }
    }
    std::fill(scores + from, scores + to, 0.0f);
    return count;
}

}  // namespace paperwasp
