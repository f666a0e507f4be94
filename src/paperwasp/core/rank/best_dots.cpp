// The best hits by the dot product of a vector and that of each hit, which are read where they stand. The plain twin is in
// tests/oracles/best_dots.py.
//
// vector: (size); vectors: (n, size), both float or both double. rows: by lid where its vector stands (`attributes.rows`: offset << 24 |
// length); a lid that has none, or is beyond them, scores `nothing`. hits: a bitmap by lid, of which those in [first, last) are looked at;
// both are multiples of 64, unless there are no more.
//
// Threads: any; parts of the same hits may be searched at once. The writer may store into `rows` meanwhile.
//
// The best `wanted`, best first, and how many were scored in time: all, or the first ones. Throws OutOfTime where none was. What is no
// finite number counts as -infinity. Hits are scored in blocks of ROWS_AT_ONCE, so that only the best take memory.
#include <cmath>
#include <limits>
#include <memory>

#include "arrays.hpp"
#include "bitmap_fill.hpp"
#include "clock.hpp"
#include "index/reader.hpp"
#include "rank/best_of.hpp"
#include "vectors/dots.hpp"

namespace paperwasp {
namespace {

constexpr int64_t HIT_STEPS = 4;  // beside the product

template <typename T>
using Vectors = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename T>
class BestDots {
  public:
    BestDots(In<T> vector, Vectors<T> vectors, In<uint64_t> rows, T nothing, size_t wanted, size_t hits)
        : vector_(vector.data()),
          vectors_(vectors.data()),
          count_(vectors.shape(0)),
          size_(vectors.shape(1)),
          rows_(rows.data()),
          limit_(rows.shape(0)),
          nothing_(nothing),
          best_(wanted, hits) {}

    // Of the hits in words `from` to `to`. Throws OutOfTime where none was scored.
    void search(const uint64_t* words, size_t from, size_t to) {
        try {
            Clock clock;
            for (size_t word = from; word < to; ++word) {
                for (uint64_t bits = words[word]; bits != 0; bits &= bits - 1)
                    add(static_cast<uint32_t>(64 * word + static_cast<size_t>(__builtin_ctzll(bits))));
                if (waiting_ + 64 > ROWS_AT_ONCE) score(clock);
            }
            score(clock);
        } catch (const OutOfTime&) {
            if (scored_ == 0) throw;
        }
    }

    std::vector<ScoredHit> best() { return best_.sorted(); }
    uint64_t scored() const { return scored_; }

  private:
    void add(uint32_t lid) {
        // Each is read once: the writer may change it meanwhile.
        const uint64_t row = lid < limit_ ? __atomic_load_n(rows_ + lid, __ATOMIC_RELAXED) : 0;
        lids_[waiting_] = lid;
        places_[waiting_++] = number_of_elements(row) == 0 ? NO_ROW : static_cast<size_t>(row >> ROW_LENGTH_BITS);
    }

    void score(Clock& clock) {
        clock.spend(HIT_STEPS * static_cast<int64_t>(waiting_));
        const auto place = [this](size_t i) { return places_[i]; };
        dots_at_places(vector_, vectors_, count_, size_, waiting_, place, nothing_, numbers_, clock);
        for (size_t i = 0; i < waiting_; ++i) {
            const double score = static_cast<double>(numbers_[i]);
            best_.add(lids_[i], std::isfinite(score) ? score : -std::numeric_limits<double>::infinity());
        }
        scored_ += waiting_;
        waiting_ = 0;
    }

    const T *vector_, *vectors_;
    const size_t count_, size_;
    const uint64_t* rows_;
    const size_t limit_;
    const T nothing_;
    BestOf best_;
    uint32_t lids_[ROWS_AT_ONCE];
    size_t places_[ROWS_AT_ONCE];
    T numbers_[ROWS_AT_ONCE];
    size_t waiting_ = 0;
    uint64_t scored_ = 0;
};

template <typename T>
nb::tuple best_dots(In<T> vector, Vectors<T> vectors, In<uint64_t> rows, T nothing, In<uint64_t> hits, size_t wanted, uint64_t first,
                    uint64_t last) {
    const uint64_t all = uint64_t{64} * hits.size();
    if (vector.size() != vectors.shape(1)) throw std::invalid_argument("rows of different sizes");
    if (first % 64 != 0 || (last % 64 != 0 && last < all)) throw std::invalid_argument("parts begin and end with a word of the bitmap");
    auto lids = std::make_unique<std::vector<uint32_t>>();
    auto scores = std::make_unique<std::vector<double>>();
    uint64_t scored = 0;
    const size_t from = static_cast<size_t>(first / 64), to = static_cast<size_t>(std::min(last, all) / 64);
    if (wanted > 0 && from < to) {
        if (const size_t count = count_bits(hits.data() + from, hits.data() + from, to - from); count > 0) {
            const GilRelease release(is_much(count * (vectors.shape(1) / 4 + 1)));
            BestDots<T> search(vector, vectors, rows, nothing, wanted, count);
            search.search(hits.data(), from, to);
            for (const ScoredHit& hit : search.best()) {
                lids->push_back(hit.lid);
                scores->push_back(hit.score);
            }
            scored = search.scored();
        }
    }
    return nb::make_tuple(own(std::move(lids)), own(std::move(scores)), scored);
}

template <typename T>
void bind_one(nb::module_& m) {
    m.def("best_dots", &best_dots<T>, nb::arg("vector").noconvert(), nb::arg("vectors").noconvert(), nb::arg("rows").noconvert(),
          nb::arg("nothing"), nb::arg("hits").noconvert(), nb::arg("wanted"), nb::arg("first") = 0, nb::arg("last") = UINT32_MAX);
}

}  // namespace

void bind_best_dots(nb::module_& m) {
    bind_one<float>(m);
    bind_one<double>(m);
}

}  // namespace paperwasp
