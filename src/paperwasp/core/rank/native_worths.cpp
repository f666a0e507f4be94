// What occurrences are worth: see native_worths.hpp.
#include "rank/native_worths.hpp"

#include "xxh3.hpp"

namespace paperwasp {
namespace {

// Rounds up what occurrences are worth.
class Rounding {
  public:
    explicit Rounding(const NativeField& field) : field_(field) {
        const double highest = field.first.most * field.first_importance + field.count.most * (1.0 - field.first_importance);
        steps_ = highest > 0 ? WORTH_STEPS * (1 + NATIVE_SLACK) / highest : 0;
    }

    uint8_t of(uint32_t place, uint32_t frequency, int64_t own_length) const {
        const auto length = static_cast<uint64_t>(field_.length_of(own_length));
        const double worth =
            field_.early(place, length) * field_.first_importance + field_.often(frequency, length) * (1.0 - field_.first_importance);
        return static_cast<uint8_t>(std::min(255.0, worth * steps_ + 1));
    }

  private:
    const NativeField& field_;
    double steps_;
};

}  // namespace

uint64_t worths_number(const NativeField& field) {
    struct {
        double first_importance;
        int64_t fixed_length, least_length;
        uint64_t first, count, firsts, counts;
    } const parts{field.first_importance,
                  field.fixed_length,
                  field.least_length,
                  xxh3_of(reinterpret_cast<const unsigned char*>(field.first.values), (field.first.last + 1) * sizeof(double)),
                  xxh3_of(reinterpret_cast<const unsigned char*>(field.count.values), (field.count.last + 1) * sizeof(double)),
                  field.first.last,
                  field.count.last};
    return xxh3_of(reinterpret_cast<const unsigned char*>(&parts), sizeof parts);
}

NativeWorths::NativeWorths(const NativeField& field, uint64_t number, const Segment& segment, uint32_t place, Clock& clock) {
    const FieldIndex& field_index = segment.field_indexes[field.index];
    size_ = field_index.frequencies[place];
    const WorthsKey key{number, field.index, place};
    const bool may_keep = segment.frequent != nullptr && size_ >= KEPT_WORTHS_FREQUENCY;
    if (may_keep && (bytes_ = segment.frequent->find_worths(key)) != nullptr) return;
    own_.reset(new uint8_t[size_ + 1]());
    const Rounding rounding(field);
    uint8_t* to = own_.get();
    for (Cursor cursor(field_index, place); !cursor.exhausted(); cursor.next_block()) {
        clock.spend(STEPS_OF_WORTH * BLOCK);
        const uint32_t *documents = cursor.documents(), *frequencies = cursor.frequencies(), *starts = cursor.occurrence_starts();
        const uint8_t* run = cursor.position_run();
        for (uint32_t i = 0, n = cursor.count(); i < n; ++i)
            *to++ = rounding.of(run_value(run + 1, run[0], starts[i]), frequencies[i], field_index.field_lengths[documents[i]]);
    }
    own_[size_] = *std::max_element(own_.get(), own_.get() + size_);
    bytes_ = own_.get();
    if (!may_keep) return;
    if (const uint8_t* kept = segment.frequent->keep_worths(key, own_, size_ + 1)) bytes_ = kept;
}

NativeWorths::NativeWorths(const NativeField& field, const Segment* segment, const uint32_t* lids, const uint32_t* offsets,
                           const uint32_t* positions, size_t first, size_t last)
    : size_(last - first), own_(new uint8_t[size_ + 1]()) {
    const Rounding rounding(field);
    for (size_t i = 0; i < size_; ++i) {
        const uint32_t from = offsets[first + i], frequency = offsets[first + i + 1] - from;
        const int64_t length = segment != nullptr ? segment->length(field.index, lids[first + i] - segment->base) : 0;
        own_[i] = frequency > 0 ? rounding.of(positions[from], frequency, length) : 0;
    }
    own_[size_] = size_ > 0 ? *std::max_element(own_.get(), own_.get() + size_) : uint8_t{0};
    bytes_ = own_.get();
}

}  // namespace paperwasp
