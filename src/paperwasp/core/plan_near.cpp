// nearestNeighbor in plans: see plan_near.hpp.
#include "plan_near.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "bitmap_fill.hpp"
#include "vector_text.hpp"

namespace paperwasp {
namespace {

using hnsw::Hit;

// The square of the length of a vector that surely can be in a graph; to a longer one, documents are compared one by one.
constexpr double MOST_SQUARE = 0x1p118;

bool has(const In<uint64_t>& bitmap, uint32_t lid) {
    return (lid >> 6) < bitmap.size() && (bitmap.data()[lid >> 6] >> (lid & 63) & 1) != 0;
}

}  // namespace

NearQuery::NearQuery(const NearForm& form, const NearSearch& search, const NearVectors& vectors, std::vector<char> cells)
    : form_(&form),
      search_(search),
      vectors_(&vectors),
      cells_(std::move(cells)),
      norm_(norm_of_query(static_cast<hnsw::Cell>(vectors.graph.index->shape().cell), cells_.data(),
                          vectors.graph.index->shape().dimensions)),
      limit_(computed_limit(form.nearness, form.threshold, norm_)) {}

std::optional<NearQuery> NearQuery::of(std::string_view json, const NearForm& form, const NearSearch& search, const NearVectors& vectors) {
    const hnsw::Shape& shape = vectors.graph.index->shape();
    std::optional<std::vector<char>> cells = query_cells(json, form.written, static_cast<hnsw::Cell>(shape.cell), shape.dimensions);
    if (!cells) return std::nullopt;
    NearQuery query(form, search, vectors, std::move(*cells));
    if (!(query.norm_ <= MOST_SQUARE)) return std::nullopt;
    return query;
}

hnsw::Wanted NearQuery::wanted(const In<uint64_t>* accept) const {
    hnsw::Wanted wanted{search_.count,        search_.explore,     nullptr,       0, search_.limit, limit_,
                        search_.filter_first, search_.exploration, search_.slack, 0};
    if (accept != nullptr) wanted.accept = accept->data(), wanted.accept_words = accept->size();
    return wanted;
}

uint64_t NearQuery::expected_ns() const { return steps_of(*vectors_->graph.index, wanted(nullptr)); }

std::optional<std::vector<NearDocument>> NearQuery::find(const In<uint64_t>& live, const In<uint64_t>& allowed) const {
    const auto [index, column] = vectors_->graph;
    const auto search = [&](const In<uint64_t>* accept) { return hnsw::find(*index, column, cells_.data(), wanted(accept)); };
    std::vector<Hit> hits = search(search_.uses_filter ? &allowed : nullptr);
    if (!search_.uses_filter) {
        // Where documents that died since are found, the others are looked for again.
        if (!std::all_of(hits.begin(), hits.end(), [&](const Hit& hit) { return has(live, hit.owner); })) hits = search(&live);
        hits.erase(std::remove_if(hits.begin(), hits.end(), [&](const Hit& hit) { return !has(allowed, hit.owner); }), hits.end());
    }
    std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.owner < b.owner; });
    const double most = std::min(limit_, std::numeric_limits<double>::max());
    std::vector<NearDocument> found;
    found.reserve(hits.size());
    for (const Hit& hit : hits) {
        const uint64_t one = uint64_t{hit.node} << ROW_LENGTH_BITS | 1;
        if (hit.owner >= vectors_->rows.size() || __atomic_load_n(vectors_->rows.data() + hit.owner, __ATOMIC_RELAXED) != one)
            return std::nullopt;
        if (hit.distance > most) continue;
        found.push_back({hit.owner, closeness(hit.distance)});
    }
    return found;
}

double NearQuery::least() const { return form_->nearness == Nearness::DOTPRODUCT ? std::numeric_limits<double>::lowest() : 0.0; }

double NearQuery::closeness(double computed) const { return closeness_of(form_->nearness, distance_of(form_->nearness, computed, norm_)); }

bool NearQuery::read_closeness(const std::vector<NearDocument>& found, const std::vector<uint32_t>& lids, Clock& clock,
                               double* closeness) const {
    const auto [index, column] = vectors_->graph;
    const std::unique_ptr<hnsw::Exact> exact = make_exact(index->shape(), column, cells_.data());
    auto known = found.begin();
    for (size_t i = 0; i < lids.size(); ++i) {
        known = std::find_if(known, found.end(), [&](const NearDocument& document) { return document.lid >= lids[i]; });
        if (known != found.end() && known->lid == lids[i]) {
            closeness[i] = std::max(least(), known->closeness);
            continue;
        }
        if (lids[i] >= vectors_->rows.size()) return false;
        const uint64_t row = __atomic_load_n(vectors_->rows.data() + lids[i], __ATOMIC_RELAXED);
        clock.spend(static_cast<int64_t>(index->shape().dimensions / 4 + 1));
        closeness[i] = least();
        if (number_of_elements(row) == 0) continue;
        if (row >> ROW_LENGTH_BITS >= column.rows) return false;
        const double computed = (*exact)(static_cast<uint32_t>(row >> ROW_LENGTH_BITS));
        if (computed < std::numeric_limits<double>::infinity()) closeness[i] = std::max(least(), this->closeness(computed));
    }
    return true;
}

}  // namespace paperwasp
