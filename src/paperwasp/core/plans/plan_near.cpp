// nearestNeighbor in plans: see plan_near.hpp.
#include "plans/plan_near.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "bitmap_fill.hpp"
#include "clock.hpp"
#include "vectors/nearest_hits.hpp"
#include "vectors/vector_text.hpp"

namespace paperwasp {
namespace {

using hnsw::Hit;

// The square of the length of a vector that surely can be in a graph; to a longer one, documents are compared one by one.
constexpr double MOST_SQUARE = 0x1p118;

// About what it takes to compare vectors one by one.
constexpr size_t NS_OF_DOCUMENT = 5, CELLS_OF_NS = 4;
constexpr double NO_VECTOR = std::numeric_limits<double>::infinity();

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

uint64_t NearQuery::expected_ns() const {
    if (search_.compared > 0) return search_.compared * (NS_OF_DOCUMENT + vectors_->graph.index->shape().dimensions / CELLS_OF_NS);
    return steps_of(*vectors_->graph.index, wanted(nullptr));
}

std::optional<std::vector<NearDocument>> NearQuery::find(const In<uint64_t>& live, const In<uint64_t>& allowed) const {
    if (search_.compared > 0) return compare(allowed);
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

// The documents that an exact search finds. Nothing: a vector is of a later moment.
std::optional<std::vector<NearDocument>> NearQuery::compare(const In<uint64_t>& allowed) const {
    const auto [index, column] = vectors_->graph;
    const std::unique_ptr<hnsw::Exact> exact = make_exact(index->shape(), column, cells_.data());
    Clock clock;
    std::vector<double> heap(std::max<size_t>(search_.count, 1));
    NearestHits hits(heap.data(), heap.size(), 0, limit_);
    std::vector<NearDocument> found;
    for (size_t word = 0; word < allowed.size(); ++word)
        for (uint64_t left = allowed.data()[word]; left != 0; left &= left - 1) {
            const auto lid = static_cast<uint32_t>(word * 64 + static_cast<size_t>(__builtin_ctzll(left)));
            double distance = NO_VECTOR;
            if (lid >= search_.limit) break;
            if (!read_distance(*exact, lid, clock, distance)) return std::nullopt;
            if (hits.add(distance)) found.push_back({lid, closeness(distance)});
        }
    return found;
}

// What is computed of a document's vector; infinite: it has none, or none that is a number. False: it is of a later moment.
bool NearQuery::read_distance(const hnsw::Exact& exact, uint32_t lid, Clock& clock, double& distance) const {
    if (lid >= vectors_->rows.size()) return false;
    const uint64_t row = __atomic_load_n(vectors_->rows.data() + lid, __ATOMIC_RELAXED);
    clock.spend(static_cast<int64_t>(vectors_->graph.index->shape().dimensions / CELLS_OF_NS + 1));
    distance = NO_VECTOR;
    if (number_of_elements(row) == 0) return true;
    if (row >> ROW_LENGTH_BITS >= vectors_->graph.column.rows) return false;
    const double computed = exact(static_cast<uint32_t>(row >> ROW_LENGTH_BITS));
    if (computed < NO_VECTOR) distance = computed;
    return true;
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
        double distance = NO_VECTOR;
        if (!read_distance(*exact, lids[i], clock, distance)) return false;
        closeness[i] = distance < NO_VECTOR ? std::max(least(), this->closeness(distance)) : least();
    }
    return true;
}

}  // namespace paperwasp
