// Building, opening and walking field indexes. The format and its invariants are in field_index.hpp.
#include "index/field_index.hpp"

#include <algorithm>
#include <cstring>

namespace paperwasp {

FieldIndex FieldIndex::open(const uint8_t* bytes, size_t size) {
    if (size < sizeof(FieldIndexHeader) + PADDING || reinterpret_cast<uintptr_t>(bytes) % 8 != 0)
        throw std::invalid_argument("a field index is too short or not aligned");
    FieldIndex s;
    s.header = reinterpret_cast<const FieldIndexHeader*>(bytes);
    const FieldIndexHeader& h = *s.header;
    if (h.magic != FIELD_INDEX_MAGIC) throw std::invalid_argument("not a field index of this version");
    // clang-format off
    const uint64_t least[SECTIONS] = {
        2ull * h.documents, 4ull * h.terms,  4ull * h.terms,  8ull * (h.terms + 1ull), 8ull * (h.terms + 1ull), 4ull * h.terms,
        4ull * h.terms,     4ull * h.terms,  4ull * h.blocks, 4ull * h.blocks,         4ull * h.blocks,         4ull * h.blocks,
        4ull * h.champions, 4ull * h.champions, h.elements > 0 ? 4 * (h.documents + 1ull) : 0, 4ull * h.elements, 0, 0, 0};
    // clang-format on
    for (uint32_t i = 0; i < SECTIONS; ++i) {
        const uint64_t from = h.offsets[i], to = h.offsets[i + 1];
        if (from % 8 != 0 || from > to || to > size - PADDING || to - from < least[i])
            throw std::invalid_argument("a field index's sections do not fit");
    }
    const auto at = [&](Section section) { return bytes + h.offsets[section]; };
    s.field_lengths = reinterpret_cast<const uint16_t*>(at(FIELD_LENGTHS));
    s.terms = reinterpret_cast<const uint32_t*>(at(TERMS));
    s.frequencies = reinterpret_cast<const uint32_t*>(at(FREQUENCIES));
    s.starts = reinterpret_cast<const uint64_t*>(at(STARTS));
    s.position_starts = reinterpret_cast<const uint64_t*>(at(POSITION_STARTS));
    s.max_weights = reinterpret_cast<const float*>(at(MAX_WEIGHTS));
    s.block_starts = reinterpret_cast<const uint32_t*>(at(BLOCK_STARTS));
    s.champion_starts = reinterpret_cast<const uint32_t*>(at(CHAMPION_STARTS));
    s.block_last = reinterpret_cast<const uint32_t*>(at(BLOCK_LAST));
    s.block_weights = reinterpret_cast<const float*>(at(BLOCK_WEIGHTS));
    s.block_offsets = reinterpret_cast<const uint32_t*>(at(BLOCK_OFFSETS));
    s.block_positions = reinterpret_cast<const uint32_t*>(at(BLOCK_POSITIONS));
    s.champion_weights = reinterpret_cast<const float*>(at(CHAMPION_WEIGHTS));
    s.champion_docs = reinterpret_cast<const uint32_t*>(at(CHAMPION_DOCS));
    if (h.elements > 0) {
        s.element_starts = reinterpret_cast<const uint32_t*>(at(ELEMENT_STARTS));
        s.element_ends = reinterpret_cast<const uint32_t*>(at(ELEMENT_ENDS));
        const uint64_t weights = h.offsets[ELEMENT_WEIGHTS + 1] - h.offsets[ELEMENT_WEIGHTS];
        if (weights > 0 && weights < 4ull * h.elements) throw std::invalid_argument("a field index's sections do not fit");
        if (weights > 0) s.element_weights = reinterpret_cast<const int32_t*>(at(ELEMENT_WEIGHTS));
    }
    s.postings = at(POSTINGS);
    s.positions = at(POSITIONS);
    return s;
}

uint32_t FieldIndex::find(uint32_t term) const {
    const uint32_t* end = terms + header->terms;
    const uint32_t* found = std::lower_bound(terms, end, term);
    return found != end && *found == term ? static_cast<uint32_t>(found - terms) : NO_INDEX;
}

// ---------------------------------------------------------------------------------------------------------------- builder

FieldIndexBuilder::FieldIndexBuilder(const uint16_t* field_lengths, uint32_t documents, double average_length)
    : lengths_(field_lengths), documents_(documents), average_length_(average_length > 0 ? average_length : 1) {
    length_norms_.reserve(documents);
    for (uint32_t d = 0; d < documents; ++d) length_norms_.push_back(bm25_norm(lengths_[d], static_cast<float>(average_length_)));
}

void FieldIndexBuilder::begin_term(uint32_t term) {
    terms_.push_back(term);
    starts_.push_back(postings_.size());
    position_starts_.push_back(positions_.size());
    block_starts_.push_back(static_cast<uint32_t>(block_last_.size()));
    frequency_ = previous_ = buffered_ = 0;
    weights_.clear();
}

void FieldIndexBuilder::add(uint32_t document, const uint32_t* positions, uint32_t frequency) {
    if (buffered_ == BLOCK) flush_block(false);
    block_documents_[buffered_] = document;
    block_frequencies_[buffered_] = frequency;
    for (uint32_t i = 0; i < frequency; ++i) block_position_values_.push_back(positions[i]);
    weights_.push_back({bm25_weight(static_cast<float>(frequency), length_norms_[document]), document});
    ++buffered_;
    ++frequency_;
}

void FieldIndexBuilder::flush_block(bool last) {
    uint32_t gaps[BLOCK], frequencies[BLOCK];
    uint32_t gap_bits = 0, frequency_bits = 0, position_bits = 0;
    uint32_t previous = previous_;
    for (uint32_t i = 0; i < buffered_; ++i) {
        gaps[i] = block_documents_[i] - previous;
        previous = block_documents_[i];
        frequencies[i] = block_frequencies_[i] - 1;
        gap_bits |= gaps[i];
        frequency_bits |= frequencies[i];
    }
    for (uint32_t position : block_position_values_) position_bits |= position;
    const uint32_t gap_width = bit_width(gap_bits), frequency_width = bit_width(frequency_bits), position_width = bit_width(position_bits);

    if (!(last && starts_.back() == postings_.size())) {  // more than one block: bounds for each
        block_last_.push_back(previous);
        float best = 0;
        for (size_t i = weights_.size() - buffered_; i < weights_.size(); ++i) best = std::max(best, weights_[i].weight);
        block_weights_.push_back(best);
        block_offsets_.push_back(static_cast<uint32_t>(postings_.size() - starts_.back()));
        block_positions_.push_back(static_cast<uint32_t>(positions_.size() - position_starts_.back()));
    }
    previous_ = previous;

    postings_.push_back(static_cast<uint8_t>(gap_width));
    postings_.push_back(static_cast<uint8_t>(frequency_width));
    const size_t at = postings_.size();
    if (buffered_ == BLOCK) {
        const uint32_t gap_bytes = full_block_bytes(gap_width), frequency_bytes = full_block_bytes(frequency_width);
        postings_.resize(at + gap_bytes + frequency_bytes);
        pack_block(gaps, gap_width, postings_.data() + at);
        pack_block(frequencies, frequency_width, postings_.data() + at + gap_bytes);
    } else {
        const uint32_t gap_bytes = run_bytes(buffered_, gap_width), frequency_bytes = run_bytes(buffered_, frequency_width);
        postings_.resize(at + gap_bytes + frequency_bytes + 8);
        pack_run(gaps, buffered_, gap_width, postings_.data() + at);
        pack_run(frequencies, buffered_, frequency_width, postings_.data() + at + gap_bytes);
        postings_.resize(at + gap_bytes + frequency_bytes);
    }

    const size_t position_at = positions_.size();
    const size_t position_bytes = run_bytes(block_position_values_.size(), position_width);
    positions_.resize(position_at + 1 + position_bytes + 8);
    positions_[position_at] = static_cast<uint8_t>(position_width);
    pack_run(block_position_values_.data(), block_position_values_.size(), position_width, positions_.data() + position_at + 1);
    positions_.resize(position_at + 1 + position_bytes);
    block_position_values_.clear();
    buffered_ = 0;
}

void FieldIndexBuilder::end_term() {
    if (frequency_ == 0) {  // every document of the term was dropped
        terms_.pop_back();
        starts_.pop_back();
        position_starts_.pop_back();
        block_starts_.pop_back();
        return;
    }
    flush_block(true);
    frequencies_.push_back(frequency_);
    if (block_last_.size() == block_starts_.back()) block_starts_.back() = NO_INDEX;
    champion_starts_.push_back(NO_INDEX);
    if (frequency_ >= CHAMPION_FREQUENCY) {
        champion_starts_.back() = static_cast<uint32_t>(champion_docs_.size());
        std::partial_sort(weights_.begin(), weights_.begin() + CHAMPIONS, weights_.end(), [](const Champion& a, const Champion& b) {
            return a.weight != b.weight ? a.weight > b.weight : a.document < b.document;
        });
        for (uint32_t i = 0; i < CHAMPIONS; ++i) {
            champion_weights_.push_back(weights_[i].weight);
            champion_docs_.push_back(weights_[i].document);
        }
        max_weights_.push_back(weights_[0].weight);
    } else {
        float best = 0;
        for (const Champion& w : weights_) best = std::max(best, w.weight);
        max_weights_.push_back(best);
    }
}

std::vector<uint8_t> FieldIndexBuilder::finish(const Elements& elements) {
    starts_.push_back(postings_.size());
    position_starts_.push_back(positions_.size());
    FieldIndexHeader header{};
    header.magic = FIELD_INDEX_MAGIC;
    header.documents = documents_;
    for (uint32_t i = 0; i < documents_; ++i) {
        header.documents_with_field += lengths_[i] > 0;
        header.tokens += lengths_[i];
    }
    header.terms = static_cast<uint32_t>(terms_.size());
    header.blocks = static_cast<uint32_t>(block_last_.size());
    header.champions = static_cast<uint32_t>(champion_docs_.size());
    header.elements = static_cast<uint32_t>(elements.ends.size());
    header.average_length = average_length_;
    const auto bytes_of = [](const auto& v) { return v.size() * sizeof(v[0]); };
    const std::pair<const void*, size_t> sections[SECTIONS] = {
        {lengths_, documents_ * sizeof(uint16_t)},
        {terms_.data(), bytes_of(terms_)},
        {frequencies_.data(), bytes_of(frequencies_)},
        {starts_.data(), bytes_of(starts_)},
        {position_starts_.data(), bytes_of(position_starts_)},
        {max_weights_.data(), bytes_of(max_weights_)},
        {block_starts_.data(), bytes_of(block_starts_)},
        {champion_starts_.data(), bytes_of(champion_starts_)},
        {block_last_.data(), bytes_of(block_last_)},
        {block_weights_.data(), bytes_of(block_weights_)},
        {block_offsets_.data(), bytes_of(block_offsets_)},
        {block_positions_.data(), bytes_of(block_positions_)},
        {champion_weights_.data(), bytes_of(champion_weights_)},
        {champion_docs_.data(), bytes_of(champion_docs_)},
        {elements.starts.data(), elements.ends.empty() ? 0 : bytes_of(elements.starts)},
        {elements.ends.data(), bytes_of(elements.ends)},
        {elements.weights.data(), bytes_of(elements.weights)},
        {postings_.data(), postings_.size()},
        {positions_.data(), positions_.size()},
    };
    uint64_t at = sizeof header;
    for (uint32_t i = 0; i < SECTIONS; ++i) {
        header.offsets[i] = at;
        at = (at + sections[i].second + 7) / 8 * 8;
    }
    header.offsets[SECTIONS] = at;
    std::vector<uint8_t> buffer(at + PADDING, 0);
    std::memcpy(buffer.data(), &header, sizeof header);
    for (uint32_t i = 0; i < SECTIONS; ++i)
        if (sections[i].second > 0) std::memcpy(buffer.data() + header.offsets[i], sections[i].first, sections[i].second);
    return buffer;
}

// ----------------------------------------------------------------------------------------------------------------- cursor

Cursor::Cursor(const FieldIndex& field_index, uint32_t place) {
    frequency_ = field_index.frequencies[place];
    blocks_ = blocks_of(frequency_);
    bytes_ = field_index.postings + field_index.starts[place];
    position_bytes_ = field_index.positions + field_index.position_starts[place];
    max_weight_ = field_index.max_weights[place];
    single_last_ = field_index.documents() - 1;
    if (const uint32_t start = field_index.block_starts[place]; start != NO_INDEX) {
        last_ = field_index.block_last + start;
        weight_ = field_index.block_weights + start;
        offsets_ = field_index.block_offsets + start;
        position_offsets_ = field_index.block_positions + start;
    }
}

void PlainPostings::reserve(size_t count) {
    documents.reserve(count);
    frequencies.reserve(count);
}

void PlainPostings::add(uint32_t document, uint32_t frequency, const uint16_t* lengths, double average_length) {
    const float weight = bm25_weight(static_cast<float>(frequency), lengths[document], static_cast<float>(average_length));
    if (documents.size() % BLOCK == 0) {
        block_last.push_back(document);
        block_weights.push_back(weight);
    }
    block_last.back() = document;
    block_weights.back() = std::max(block_weights.back(), weight);
    max_weight = std::max(max_weight, weight);
    documents.push_back(document);
    frequencies.push_back(frequency);
}

Cursor::Cursor(const PlainPostings& postings)
    : plain_(&postings),
      last_(postings.block_last.data()),
      weight_(postings.block_weights.data()),
      max_weight_(postings.max_weight),
      single_last_(postings.documents.back()),
      frequency_(static_cast<uint32_t>(postings.documents.size())),
      blocks_(blocks_of(frequency_)) {}

void Cursor::shallow_seek(uint32_t document) {
    if (block_ >= blocks_ || last_of(block_) >= document) return;
    if (last_ == nullptr) {
        block_ = blocks_;
        return;
    }
    uint32_t step = 1, low = block_ + 1;
    while (low + step < blocks_ && last_[low + step] < document) {
        low += step;
        step *= 2;
    }
    const uint32_t high = std::min(low + step + 1, blocks_);
    block_ = static_cast<uint32_t>(std::lower_bound(last_ + low, last_ + high, document) - last_);
}

const uint32_t* Cursor::documents() {
    if (decoded_documents_ != block_) decode_documents();
    return document_values_;
}

const uint32_t* Cursor::frequencies() {
    if (decoded_frequencies_ != block_) decode_frequencies();
    return frequency_values_;
}

void Cursor::decode_documents() {
    if (plain_ != nullptr) {
        std::copy_n(plain_->documents.data() + size_t{block_} * BLOCK, count(), document_values_);
        std::fill(document_values_ + count(), document_values_ + BLOCK, NO_INDEX);
        decoded_documents_ = block_;
        return;
    }
    const uint8_t* at = bytes_ + (offsets_ != nullptr ? offsets_[block_] : 0);
    const uint32_t width = at[0];
    const uint32_t before = block_ > 0 ? last_[block_ - 1] : 0;
    const uint32_t n = count();
    if (n == BLOCK) {
        unpack_block(at + 2, width, document_values_);
        prefix_sum(document_values_, before);
    } else {
        uint32_t document = before;
        for (uint32_t i = 0; i < n; ++i) document_values_[i] = document += run_value(at + 2, width, i);
        std::fill(document_values_ + n, document_values_ + BLOCK, NO_INDEX);
    }
    decoded_documents_ = block_;
}

void Cursor::decode_frequencies() {
    if (plain_ != nullptr) {
        std::copy_n(plain_->frequencies.data() + size_t{block_} * BLOCK, count(), frequency_values_);
        std::fill(frequency_values_ + count(), frequency_values_ + BLOCK, 1u);
        decoded_frequencies_ = block_;
        return;
    }
    const uint8_t* at = bytes_ + (offsets_ != nullptr ? offsets_[block_] : 0);
    const uint32_t gap_width = at[0], width = at[1];
    const uint32_t n = count();
    if (n == BLOCK) {
        unpack_block(at + 2 + full_block_bytes(gap_width), width, frequency_values_);
        for (uint32_t i = 0; i < BLOCK; ++i) frequency_values_[i] += 1;
    } else {
        at += 2 + run_bytes(n, gap_width);
        for (uint32_t i = 0; i < n; ++i) frequency_values_[i] = 1 + run_value(at, width, i);
        std::fill(frequency_values_ + n, frequency_values_ + BLOCK, 1u);
    }
    decoded_frequencies_ = block_;
}

uint32_t Cursor::find(uint32_t document) {
    shallow_seek(document);
    if (exhausted()) return NO_INDEX;
    const uint32_t* documents = this->documents();
    const uint32_t at = count_below(documents, document);
    return at < BLOCK && documents[at] == document ? at : NO_INDEX;
}

void Cursor::count_occurrences() {
    const uint32_t* frequencies = this->frequencies();
    const uint32_t n = count();
    occurrence_starts_[0] = 0;
    for (uint32_t i = 0; i < n; ++i) occurrence_starts_[i + 1] = occurrence_starts_[i] + frequencies[i];
    counted_block_ = block_;
}

void Cursor::positions(uint32_t index, uint32_t* to) {
    const uint32_t* starts = occurrence_starts();
    const uint8_t* at = position_bytes_ + (position_offsets_ != nullptr ? position_offsets_[block_] : 0);
    const uint32_t width = at[0], from = starts[index], count = starts[index + 1] - from;
    for (uint32_t i = 0; i < count; ++i) to[i] = run_value(at + 1, width, uint64_t{from} + i);
}

void Cursor::block_positions(uint32_t* to) {
    const uint8_t* at = position_bytes_ + (position_offsets_ != nullptr ? position_offsets_[block_] : 0);
    unpack_run(at + 1, at[0], occurrence_starts()[count()], to);
}

}  // namespace paperwasp
