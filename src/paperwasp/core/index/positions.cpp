// What stands where: phrases, nearness and unions of terms, over positions that were already looked up.
//
// Rows are documents. A list of rows is (offsets[rows + 1], values): row i has values[offsets[i]..offsets[i + 1]], rising. All lists of a
// call have the same rows. A position counts from the start of the field; a key is element << 32 | position in that element.
// Reads its arguments only; the GIL is released where there is much to do.
#include <algorithm>
#include <memory>
#include <vector>

#include "arrays.hpp"
#include "clock.hpp"

namespace paperwasp {
namespace {

constexpr uint64_t STEPS_OF_VALUE = 4;

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
        const auto o = as_given<uint32_t>(offsets[i]);
        const auto v = as_given<T>(values[i]);
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
    Clock clock;
    const Lists<uint32_t> in = lists_of<uint32_t>(offsets, positions);
    auto to = std::make_unique<std::vector<uint32_t>>(in.rows + 1, 0);
    auto merged = std::make_unique<std::vector<uint32_t>>();
    {
        const GilRelease unlocked(is_much(STEPS_OF_VALUE * in.values + in.rows * in.lists.size()));
        merged->reserve(in.values);
        for (size_t row = 0; row < in.rows; ++row) {
            const auto start = static_cast<std::ptrdiff_t>(merged->size());
            size_t lists = 0;  // that have something here
            for (const auto& list : in.lists) {
                lists += list.begin(row) != list.end(row);
                merged->insert(merged->end(), list.begin(row), list.end(row));
            }
            if (lists > 1) std::sort(merged->begin() + start, merged->end());
            clock.spend(static_cast<int64_t>(in.lists.size() + 8 * (merged->size() - static_cast<size_t>(start))));
            merged->erase(std::unique(merged->begin() + start, merged->end()), merged->end());
            (*to)[row + 1] = static_cast<uint32_t>(merged->size());
        }
    }
    return nb::make_tuple(own(std::move(to)), own(std::move(merged)));
}

// Where the lists follow each other: positions p such that list i has p + i.
nb::tuple follow(const nb::list& offsets, const nb::list& positions) {
    Clock clock;
    const Lists<uint32_t> in = lists_of<uint32_t>(offsets, positions);
    auto to = std::make_unique<std::vector<uint32_t>>(in.rows + 1, 0);
    auto starts = std::make_unique<std::vector<uint32_t>>();
    {
        const GilRelease unlocked(is_much(STEPS_OF_VALUE * in.values + in.rows * in.lists.size()));
        for (size_t row = 0; row < in.rows; ++row) {
            const size_t first = starts->size();
            starts->insert(starts->end(), in.lists[0].begin(row), in.lists[0].end(row));
            for (size_t i = 1; i < in.lists.size() && starts->size() > first; ++i) {
                const uint32_t* at = in.lists[i].begin(row);
                const uint32_t* end = in.lists[i].end(row);
                clock.spend(static_cast<int64_t>(starts->size() - first) + (end - at));
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

// What the lists of one term say beside its positions: of each position, the number of its element, and where that starts and ends.
struct Elements {
    const uint32_t *numbers = nullptr, *starts = nullptr, *ends = nullptr;  // nullptr: all in one element
};

// One row's positions of one term.
struct Places {
    const uint32_t *begin, *at, *end;
    Elements elements;
    uint64_t key(const uint32_t* p) const {
        const auto i = p - begin;
        return elements.numbers == nullptr ? *p : uint64_t{elements.numbers[i]} << 32 | (*p - elements.starts[i]);
    }
    uint32_t length(const uint32_t* p) const {
        return elements.numbers == nullptr ? 0 : elements.ends[p - begin] - elements.starts[p - begin];
    }
};

// From one position to another, both of it.
struct Span {
    uint32_t first, last;
};

class NearInRow {
  public:
    NearInRow(std::vector<Places>& wanted, std::vector<Places>& excluded, const Window& window, uint64_t distance, uint64_t exclusion,
              Clock& clock)
        : wanted_(wanted), excluded_(excluded), window_(window), distance_(distance), exclusion_(exclusion), clock_(clock) {}

    // Windows with all terms, in any order: from each place of a term to the farthest of the next places of the others.
    void any_order(std::vector<Span>& spans) {
        for (;;) {
            clock_.spend(static_cast<int64_t>(2 * wanted_.size()));
            Places* front = &wanted_[0];
            const Places* farthest = &wanted_[0];
            for (Places& term : wanted_) {
                if (term.at == term.end) return;
                if (*term.at < *front->at) front = &term;
                if (*term.at > *farthest->at) farthest = &term;
            }
            add(*front, *farthest, spans);
            const uint32_t done = *front->at;
            for (Places& term : wanted_) term.at += *term.at == done;
        }
    }

    // Windows from each place of the first term, in which the others follow, each as soon as it can.
    void in_order(std::vector<Span>& spans) {
        Places& first = wanted_[0];
        for (; first.at < first.end; ++first.at) {
            clock_.spend(static_cast<int64_t>(2 * wanted_.size()));
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
        const uint64_t start = first.key(first.at);
        if (window_.reach(start, first.length(first.at), distance_).before(last.key(last.at))) return;
        if (!excluded_.empty() && excludes(start, last)) return;
        spans.push_back({*first.at, *last.at});
    }

    // Whether an excluded term is too near to a window. Windows come with rising starts.
    bool excludes(uint64_t start, const Places& last) {
        clock_.spend(static_cast<int64_t>(excluded_.size()));
        const Reach end = window_.reach(last.key(last.at), last.length(last.at), exclusion_);
        for (Places& term : excluded_) {
            while (term.at < term.end && window_.reach(term.key(term.at), term.length(term.at), exclusion_).before(start)) ++term.at;
            if (term.at < term.end && !end.before(term.key(term.at))) return true;
        }
        return false;
    }

    std::vector<Places>&wanted_, &excluded_;
    const Window& window_;
    uint64_t distance_, exclusion_;
    Clock& clock_;
};

// Marks the positions that stand in one of the spans, whose firsts and lasts rise.
void keep_within(const std::vector<Span>& spans, const uint32_t* from, const uint32_t* to, uint8_t* kept) {
    size_t span = 0;
    for (; from < to; ++from, ++kept) {
        while (span < spans.size() && spans[span].last < *from) ++span;
        *kept = span < spans.size() && spans[span].first <= *from;
    }
}

// Of each list, where the elements of its positions are. places: none, or (numbers, starts, ends) of each list.
std::vector<Elements> elements_of(const nb::list& positions, const nb::list& places) {
    std::vector<Elements> found(positions.size());
    if (places.size() == 0) return found;
    if (places.size() != positions.size()) throw nb::value_error("elements of every list, or of none");
    for (size_t i = 0; i < places.size(); ++i) {
        const auto described = nb::cast<nb::tuple>(places[i]);
        const size_t size = as_given<uint32_t>(positions[i]).size();
        const uint32_t* arrays[3];
        if (described.size() != 3) throw nb::value_error("elements are numbers, starts and ends");
        for (size_t k = 0; k < 3; ++k) {
            const auto array = as_given<uint32_t>(described[k]);
            if (array.size() != size) throw nb::value_error("an element for each position");
            arrays[k] = array.data();
        }
        found[i] = {arrays[0], arrays[1], arrays[2]};
    }
    return found;
}

// Where terms are near each other. The first `wanted` lists are the terms, the others those that must not be near. distance: from the first
// to the last of a window; exclusion: from a window to what is excluded; gap: see Window. `places`: see elements_of.
// Returns (for each term, which of its positions stand in a window (u8), and where the windows begin: offsets[rows + 1], positions).
nb::tuple near(const nb::list& offsets, const nb::list& positions, const nb::list& places, uint32_t wanted, bool ordered, uint32_t distance,
               uint32_t exclusion, int64_t gap) {
    Clock clock;
    const Lists<uint32_t> in = lists_of<uint32_t>(offsets, positions);
    const std::vector<Elements> elements = elements_of(positions, places);
    if (wanted == 0 || wanted > in.lists.size()) throw nb::value_error("near needs terms");
    if (gap > 0xFFFFFFFFll) throw nb::value_error("a gap beyond all positions");
    const Window window{places.size() == 0 ? -1 : gap};
    std::vector<std::unique_ptr<std::vector<uint8_t>>> kept;
    for (size_t i = 0; i < wanted; ++i) kept.push_back(std::make_unique<std::vector<uint8_t>>(as_given<uint32_t>(positions[i]).size(), 0));
    auto to = std::make_unique<std::vector<uint32_t>>(in.rows + 1, 0);
    auto firsts = std::make_unique<std::vector<uint32_t>>();
    {
        const GilRelease unlocked(is_much(STEPS_OF_VALUE * in.values + in.rows * in.lists.size()));
        std::vector<Places> terms, excluded;
        std::vector<Span> spans;
        for (size_t row = 0; row < in.rows; ++row) {
            terms.clear();
            excluded.clear();
            spans.clear();
            for (size_t i = 0; i < in.lists.size(); ++i) {
                const List<uint32_t>& list = in.lists[i];
                const uint32_t at = list.offsets[row];
                Elements here = elements[i];
                if (here.numbers != nullptr) here = {here.numbers + at, here.starts + at, here.ends + at};
                (i < wanted ? terms : excluded).push_back({list.begin(row), list.begin(row), list.end(row), here});
            }
            clock.spend(static_cast<int64_t>(in.lists.size()));
            NearInRow in_row(terms, excluded, window, distance, exclusion, clock);
            ordered ? in_row.in_order(spans) : in_row.any_order(spans);
            for (size_t i = 0; i < wanted && !spans.empty(); ++i)
                keep_within(spans, in.lists[i].begin(row), in.lists[i].end(row), kept[i]->data() + in.lists[i].offsets[row]);
            for (const Span& span : spans)
                if (firsts->size() == (*to)[row] || firsts->back() != span.first) firsts->push_back(span.first);
            (*to)[row + 1] = static_cast<uint32_t>(firsts->size());
        }
    }
    nb::list marks;
    for (auto& of_term : kept) marks.append(own(std::move(of_term)));
    return nb::make_tuple(marks, own(std::move(to)), own(std::move(firsts)));
}

}  // namespace

void bind_positions(nb::module_& m) {
    m.def("merge_positions", &merge_positions, nb::arg("offsets"), nb::arg("positions"));
    m.def("follow", &follow, nb::arg("offsets"), nb::arg("positions"));
    m.def("near", &near, nb::arg("offsets"), nb::arg("positions"), nb::arg("places"), nb::arg("wanted"), nb::arg("ordered"),
          nb::arg("distance"), nb::arg("exclusion"), nb::arg("gap"));
}

}  // namespace paperwasp
