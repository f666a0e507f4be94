// Scores of the documents of a window, added up one term after the other; and then those of them that are above a limit.
//
// Documents of a window are numbered from 0. While few are added to, they are noted down, and afterwards only these are looked at. If there
// are more, all are, a vector at a time. Everything is zero before a window, and after it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/bitpack.hpp"

namespace paperwasp {

// BM25's contribution of a term to a document: numerator · f / (f + constant + slope · length).
struct Saturation {
    float numerator, constant, slope;

    float weight(uint32_t frequency, uint32_t length) const {
        const auto f = static_cast<float>(frequency);
        return numerator * f / (f + constant + slope * static_cast<float>(length));
    }
    // Of a block of BLOCK postings.
    void weigh(const uint32_t* frequencies, const uint32_t* lengths, float* weights) const;
};

class Accumulators {
  public:
    explicit Accumulators(uint32_t most_documents)
        : scores_(most_documents + BLOCK, 0.0f),
          noted_(most_documents / NOTED_SHARE + BLOCK),
          above_(std::max<size_t>(noted_.size(), PIECE + 1)) {}

    void begin(uint32_t documents) {
        documents_ = documents;
        noted_count_ = 0;
    }

    // Adds to at most BLOCK documents: to document[i] - low, which is one of the window's.
    void add(const uint32_t* documents, const float* weights, uint32_t count, uint32_t low) {
        float* scores = scores_.data();
        if (notes_do()) {
            uint32_t* noted = noted_.data() + noted_count_;
            for (uint32_t i = 0; i < count; ++i) noted[i] = documents[i] - low;
            noted_count_ += count;
        }
        for (uint32_t i = 0; i < count; ++i) scores[documents[i] - low] += weights[i];
    }

    // Ends the window. Calls visit(document, score) for its documents, which rise, whose score is above limit(), which never falls and is
    // not negative.
    template <typename Limit, typename Visit>
    void drain(Limit limit, Visit visit) {
        if (notes_do()) {
            visit_some(take_noted(limit()), visit);
            return;
        }
        for (uint32_t from = 0; from < documents_; from += PIECE) visit_some(take_piece(from, limit()), visit);
    }

  private:
    static constexpr uint32_t NOTED_SHARE = 8;  // looking at a noted document costs as much as looking at so many in a row
    static constexpr uint32_t PIECE = 1024;     // documents between two questions for the limit

    struct Above {
        uint32_t document;
        float score;
    };

    bool notes_do() const { return noted_count_ <= documents_ / NOTED_SHARE; }
    // How many are in above_ then.
    size_t take_noted(float limit);
    size_t take_piece(uint32_t from, float limit);

    template <typename Visit>
    void visit_some(size_t count, Visit visit) {
        for (size_t i = 0; i < count; ++i) visit(above_[i].document, above_[i].score);
    }

    std::vector<float> scores_;
    std::vector<uint32_t> noted_;
    std::vector<Above> above_;
    uint32_t documents_ = 0;
    size_t noted_count_ = 0;
};

}  // namespace paperwasp
