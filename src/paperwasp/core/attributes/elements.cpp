// Elements of documents: which of a row are wanted, and what two such lists have in common. Twins: tests/oracles/elements.py.
//
// A list of elements is (offsets[documents + 1], numbers): those of document i are numbers[offsets[i] .. offsets[i + 1]], rising, each
// once. What does not fit together is a ValueError. Time grows with the elements that are read; memory with those that are given.
#include <stdexcept>

#include "arrays.hpp"
#include "bitmap_fill.hpp"

namespace paperwasp {
namespace {

using Numbers = std::vector<uint32_t>;

// `length` bits of a bitmap from bit `start` on; at most 64, all of which the bitmap has.
uint64_t bits_at(const uint64_t* words, uint64_t start, uint64_t length) {
    const unsigned shift = start & 63;
    uint64_t bits = words[start >> 6] >> shift;
    if (shift + length > 64) bits |= words[(start >> 6) + 1] << (64 - shift);
    return length < 64 ? bits & ((uint64_t{1} << length) - 1) : bits;
}

// The elements of rows (`attributes.rows`: offset << 24 | length) whose bit is set in `wanted`, a bit for each of `elements`. A row that
// points outside of them has none.
nb::tuple row_elements(In<uint64_t> rows, In<uint64_t> wanted, size_t elements) {
    check_bitmap(wanted.shape(0), elements);
    const size_t count = rows.shape(0);
    auto offsets = std::make_unique<Numbers>(count + 1), numbers = std::make_unique<Numbers>();
    {
        const GilRelease release(is_much(8 * count));
        const uint64_t* words = wanted.data();
        for (size_t i = 0; i < count; ++i) {
            const uint64_t row = rows.data()[i], start = row >> ROW_LENGTH_BITS, length = row & ROW_LENGTH_MASK;
            if (start + length <= elements)
                for (uint64_t at = 0; at < length; at += 64)
                    for (uint64_t left = bits_at(words, start + at, length - at < 64 ? length - at : 64); left != 0; left &= left - 1)
                        numbers->push_back(static_cast<uint32_t>(at) + static_cast<uint32_t>(__builtin_ctzll(left)));
            (*offsets)[i + 1] = static_cast<uint32_t>(numbers->size());
        }
    }
    return nb::make_tuple(own(std::move(offsets)), own(std::move(numbers)));
}

enum class Join : unsigned { both, either, first_only };

// The elements of one document, as bits where they are all below 64; else one by one.
void join(Join how, const uint32_t* a, const uint32_t* a_end, const uint32_t* b, const uint32_t* b_end, Numbers& found) {
    if (a == a_end && how != Join::either) return;
    if ((a == a_end || a_end[-1] < 64) && (b == b_end || b_end[-1] < 64)) {
        uint64_t first = 0, second = 0;
        for (; a != a_end; ++a) first |= uint64_t{1} << *a;
        for (; b != b_end; ++b) second |= uint64_t{1} << *b;
        uint64_t left = how == Join::both ? first & second : how == Join::either ? first | second : first & ~second;
        for (; left != 0; left &= left - 1) found.push_back(static_cast<uint32_t>(__builtin_ctzll(left)));
        return;
    }
    while (a != a_end || b != b_end) {
        const bool in_a = a != a_end && (b == b_end || *a <= *b), in_b = b != b_end && (a == a_end || *b <= *a);
        if (how == Join::either || (in_a && in_b == (how == Join::both))) found.push_back(in_a ? *a : *b);
        a += in_a, b += in_b;
    }
}

void check_elements(In<uint32_t>& offsets, In<uint32_t>& numbers) {
    const uint32_t* o = offsets.data();
    bool sound = offsets.shape(0) > 0 && o[0] == 0;
    for (size_t i = 1; i < offsets.shape(0); ++i) sound &= o[i - 1] <= o[i];
    if (!sound || o[offsets.shape(0) - 1] != numbers.shape(0)) throw std::invalid_argument("offsets that do not fit the elements");
    const uint32_t* n = numbers.data();
    for (size_t i = 1; i < offsets.shape(0); ++i)  // a number that falls could be taken for one below 64
        for (uint32_t at = o[i - 1] + 1; at < o[i]; ++at) sound &= n[at - 1] < n[at];
    if (!sound) throw std::invalid_argument("elements that do not rise");
}

nb::tuple join_elements(unsigned how, In<uint32_t> a_offsets, In<uint32_t> a, In<uint32_t> b_offsets, In<uint32_t> b) {
    if (how > 2) throw std::invalid_argument("elements are joined in three ways");
    check_elements(a_offsets, a);
    check_elements(b_offsets, b);
    if (a_offsets.shape(0) != b_offsets.shape(0)) throw std::invalid_argument("elements of other documents");
    const size_t count = a_offsets.shape(0) - 1;
    auto offsets = std::make_unique<Numbers>(count + 1), numbers = std::make_unique<Numbers>();
    {
        const GilRelease release(is_much(4 * (count + a.shape(0) + b.shape(0))));
        const uint32_t *ao = a_offsets.data(), *bo = b_offsets.data();
        for (size_t i = 0; i < count; ++i) {
            join(static_cast<Join>(how), a.data() + ao[i], a.data() + ao[i + 1], b.data() + bo[i], b.data() + bo[i + 1], *numbers);
            (*offsets)[i + 1] = static_cast<uint32_t>(numbers->size());
        }
    }
    return nb::make_tuple(own(std::move(offsets)), own(std::move(numbers)));
}

}  // namespace

void bind_elements(nb::module_& m) {
    m.def("row_elements", &row_elements, nb::arg("rows").noconvert(), nb::arg("wanted").noconvert(), nb::arg("elements"),
          "Which elements of each row are wanted. Twin: tests.oracles.elements.row_elements");
    m.def("join_elements", &join_elements, nb::arg("how"), nb::arg("a_offsets").noconvert(), nb::arg("a").noconvert(),
          nb::arg("b_offsets").noconvert(), nb::arg("b").noconvert(),
          "Elements that both lists have, or one of them, or the first only. Twin: tests.oracles.elements.join_elements");
}

}  // namespace paperwasp
