// What stands where: phrases, nearness and unions of terms, over positions that were already looked up.
//
// Rows are documents. A list of rows is (offsets[rows + 1], values): row i has values[offsets[i]..offsets[i + 1]], rising. All lists of a
// call have the same rows. A position is a place in the field; a key is element << 32 | place in the element.
// Reads its arguments only; the GIL is released where there is much to do.
#include <algorithm>
#include <memory>
#include <vector>

#include "arrays.hpp"

namespace paperwasp {
namespace {

constexpr size_t MANY_VALUES = 1 << 14;  // beyond this, other threads may run meanwhile

template <typename T>
struct List {
    const uint32_t* offsets;
    const T* values;
    const T* begin(size_t row) const { return values + offsets[row]; }
    const T* end(size_t row) const { return values + offsets[row + 1]; }
};

template <typename T>
struct Lists {
    std::vector<List<T>> lists;
    size_t rows = 0, values = 0;
};

// Throws ValueError unless there is a list, and all of them have the same rows and stay inside their values.
template <typename T>
Lists<T> lists_of(const nb::list& offsets, const nb::list& values) {
    if (offsets.size() == 0 || offsets.size() != values.size()) throw nb::value_error("lists need offsets and values each");
    Lists<T> found;
    for (size_t i = 0; i < offsets.size(); ++i) {
        const auto o = nb::cast<In<uint32_t>>(offsets[i]);
        const auto v = nb::cast<In<T>>(values[i]);
        if (o.size() == 0 || (i > 0 && o.size() != found.rows + 1)) throw nb::value_error("lists of different lengths");
        found.rows = o.size() - 1;
        for (size_t row = 0; row < found.rows; ++row)
            if (o.data()[row] > o.data()[row + 1]) throw nb::value_error("offsets must rise");
        if (o.data()[found.rows] > v.size()) throw nb::value_error("offsets beyond the values");
        found.values += v.size();
        found.lists.push_back({o.data(), v.data()});
    }
    return found;
}

// All that stands in any of the lists, each position once.
nb::tuple merge_positions(const nb::list& offsets, const nb::list& positions) {
    const Lists<uint32_t> in = lists_of<uint32_t>(offsets, positions);
    auto to = std::make_unique<std::vector<uint32_t>>(in.rows + 1, 0);
    auto merged = std::make_unique<std::vector<uint32_t>>();
    {
        const GilRelease unlocked(in.values > MANY_VALUES);
        merged->reserve(in.values);
        for (size_t row = 0; row < in.rows; ++row) {
            const auto start = static_cast<std::ptrdiff_t>(merged->size());
            for (const auto& list : in.lists) {
                const auto middle = static_cast<std::ptrdiff_t>(merged->size());
                merged->insert(merged->end(), list.begin(row), list.end(row));
                std::inplace_merge(merged->begin() + start, merged->begin() + middle, merged->end());
            }
            merged->erase(std::unique(merged->begin() + start, merged->end()), merged->end());
            (*to)[row + 1] = static_cast<uint32_t>(merged->size());
        }
    }
    return nb::make_tuple(own(std::move(to)), own(std::move(merged)));
}

// Where the lists follow each other: positions p such that list i has p + i.
nb::tuple follow(const nb::list& offsets, const nb::list& positions) {
    const Lists<uint32_t> in = lists_of<uint32_t>(offsets, positions);
    auto to = std::make_unique<std::vector<uint32_t>>(in.rows + 1, 0);
    auto starts = std::make_unique<std::vector<uint32_t>>();
    {
        const GilRelease unlocked(in.values > MANY_VALUES);
        for (size_t row = 0; row < in.rows; ++row) {
            const size_t first = starts->size();
            starts->insert(starts->end(), in.lists[0].begin(row), in.lists[0].end(row));
            for (size_t i = 1; i < in.lists.size() && starts->size() > first; ++i) {
                const uint32_t* at = in.lists[i].begin(row);
                const uint32_t* end = in.lists[i].end(row);
                size_t kept = first;
                for (size_t j = first; j < starts->size(); ++j) {
                    const uint64_t wanted = (*starts)[j] + uint64_t{i};
                    while (at < end && *at < wanted) ++at;
                    if (at < end && *at == wanted) (*starts)[kept++] = (*starts)[j];
                }
                starts->resize(kept);
            }
            (*to)[row + 1] = static_cast<uint32_t>(starts->size());
        }
    }
    return nb::make_tuple(own(std::move(to)), own(std::move(starts)));
}

// ------------------------------------------------------------------------------------------------------------------- near

// A place that a window reaches to. Wider than a key, since a window may be of any size.
struct Reach {
    uint64_t element, place;
    bool before(uint64_t key) const {
        const uint64_t e = key >> 32;
        return element != e ? element < e : place < (key & 0xFFFFFFFFu);
    }
};

// How far windows reach over the boundary of an element: not at all (gap < 0), or into the next, which is `gap` places away.
struct Window {
    int64_t gap;
    Reach reach(uint64_t key, uint32_t length, uint64_t window) const {
        const uint64_t element = key >> 32, end = (key & 0xFFFFFFFFu) + window;
        const uint64_t next = length + static_cast<uint64_t>(gap < 0 ? 0 : gap);
        if (gap < 0 || next > end) return {element, end};
        return {element + 1, end - next};
    }
};

struct Span {
    uint64_t first, last;
};

// One row's keys of one term, and how long the element of each is.
struct Places {
    const uint64_t *begin, *at, *end;
    const uint32_t* lengths;
    uint32_t length(const uint64_t* key) const { return lengths[key - begin]; }
};

class NearInRow {
  public:
    NearInRow(std::vector<Places>& wanted, std::vector<Places>& excluded, const Window& window, uint64_t distance, uint64_t exclusion)
        : wanted_(wanted), excluded_(excluded), window_(window), distance_(distance), exclusion_(exclusion) {}

    // Windows with all terms, in any order: from each place of a term to the farthest of the next places of the others.
    void any_order(std::vector<Span>& spans) {
        for (;;) {
            Places* front = &wanted_[0];
            const Places* farthest = &wanted_[0];
            for (Places& term : wanted_) {
                if (term.at == term.end) return;
                if (*term.at < *front->at) front = &term;
                if (*term.at > *farthest->at) farthest = &term;
            }
            add(*front, *farthest, spans);
            ++front->at;
        }
    }

    // Windows from each place of the first term, in which the others follow, each as soon as it can.
    void in_order(std::vector<Span>& spans) {
        Places& first = wanted_[0];
        for (; first.at < first.end; ++first.at) {
            const Places* last = &first;
            for (size_t i = 1; i < wanted_.size(); ++i) {
                Places& term = wanted_[i];
                while (term.at < term.end && *term.at <= *last->at) ++term.at;
                if (term.at == term.end) return;
                last = &term;
            }
            add(first, *last, spans);
        }
    }

  private:
    void add(const Places& first, const Places& last, std::vector<Span>& spans) {
        if (window_.reach(*first.at, first.length(first.at), distance_).before(*last.at)) return;
        if (excludes(*first.at, last)) return;
        spans.push_back({*first.at, *last.at});
    }

    // Whether an excluded term is too near to a window.
    bool excludes(uint64_t start, const Places& last) {
        const Reach end = window_.reach(*last.at, last.length(last.at), exclusion_);
        for (Places& term : excluded_) {
            while (term.at < term.end && window_.reach(*term.at, term.length(term.at), exclusion_).before(start)) ++term.at;
            if (term.at < term.end && !end.before(*term.at)) return true;
        }
        return false;
    }

    std::vector<Places>&wanted_, &excluded_;
    const Window& window_;
    uint64_t distance_, exclusion_;
};

// Marks the places that stand in one of the spans, whose firsts and lasts rise.
void keep_within(const std::vector<Span>& spans, const uint64_t* from, const uint64_t* to, uint8_t* kept) {
    size_t span = 0;
    for (; from < to; ++from, ++kept) {
        while (span < spans.size() && spans[span].last < *from) ++span;
        *kept = span < spans.size() && spans[span].first <= *from;
    }
}

// Where terms are near each other. The first `wanted` lists are the terms, the others those that must not be near; lengths are those of
// each key's element. distance: from the first to the last of a window; exclusion: from a window to what is excluded; gap: see Window.
// Returns, for each term, which of its places stand in a window (u8[values]).
nb::list near(const nb::list& offsets, const nb::list& keys, const nb::list& lengths, uint32_t wanted, bool ordered, uint32_t distance, uint32_t exclusion,
              int64_t gap) {
    const Lists<uint64_t> in = lists_of<uint64_t>(offsets, keys);
    if (wanted == 0 || wanted > in.lists.size() || lengths.size() != keys.size()) throw nb::value_error("near needs terms, with lengths each");
    if (gap > 0xFFFFFFFFll) throw nb::value_error("a gap beyond all positions");
    std::vector<const uint32_t*> element_lengths;
    std::vector<std::unique_ptr<std::vector<uint8_t>>> kept;
    for (size_t i = 0; i < keys.size(); ++i) {
        const auto l = nb::cast<In<uint32_t>>(lengths[i]);
        if (l.size() != nb::cast<In<uint64_t>>(keys[i]).size()) throw nb::value_error("a length for each key");
        element_lengths.push_back(l.data());
        if (i < wanted) kept.push_back(std::make_unique<std::vector<uint8_t>>(l.size(), 0));
    }
    {
        const GilRelease unlocked(in.values > MANY_VALUES);
        const Window window{gap};
        std::vector<Places> terms, excluded;
        std::vector<Span> spans;
        for (size_t row = 0; row < in.rows; ++row) {
            terms.clear();
            excluded.clear();
            spans.clear();
            for (size_t i = 0; i < in.lists.size(); ++i) {
                const List<uint64_t>& list = in.lists[i];
                (i < wanted ? terms : excluded).push_back({list.begin(row), list.begin(row), list.end(row), element_lengths[i] + list.offsets[row]});
            }
            NearInRow in_row(terms, excluded, window, distance, exclusion);
            ordered ? in_row.in_order(spans) : in_row.any_order(spans);
            for (size_t i = 0; i < wanted && !spans.empty(); ++i)
                keep_within(spans, in.lists[i].begin(row), in.lists[i].end(row), kept[i]->data() + in.lists[i].offsets[row]);
        }
    }
    nb::list result;
    for (auto& marks : kept) result.append(own(std::move(marks)));
    return result;
}

}  // namespace

void bind_positions(nb::module_& m) {
    m.def("merge_positions", &merge_positions, nb::arg("offsets"), nb::arg("positions"));
    m.def("follow", &follow, nb::arg("offsets"), nb::arg("positions"));
    m.def("near", &near, nb::arg("offsets"), nb::arg("keys"), nb::arg("lengths"), nb::arg("wanted"), nb::arg("ordered"), nb::arg("distance"),
          nb::arg("exclusion"), nb::arg("gap"));
}

}  // namespace paperwasp
