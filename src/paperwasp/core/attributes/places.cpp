// Which rows have a position in an area, as a bitmap. The plain twin is in tests/oracles/places.py.
//
// A position is a number on a z-curve: its even bits are x, its odd bits y, both 32-bit. The area is a box (all four sides belong to it)
// and a circle around (x, y): squares of the distances along x, shortened to aspect / 2^32 of it (0: not shortened), and along y, no more
// than `square`. `rows` as in an array column; empty: one number a row, and the least of all numbers is no position.
#include <cstdlib>
#include <limits>

#include "bitmap_fill.hpp"
#include "clock.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

PAPERWASP_INLINE int32_t gathered(uint64_t bits) {
    bits &= 0x5555555555555555ull;
    bits = (bits | bits >> 1) & 0x3333333333333333ull;
    bits = (bits | bits >> 2) & 0x0F0F0F0F0F0F0F0Full;
    bits = (bits | bits >> 4) & 0x00FF00FF00FF00FFull;
    bits = (bits | bits >> 8) & 0x0000FFFF0000FFFFull;
    bits = (bits | bits >> 16) & 0x00000000FFFFFFFFull;
    return static_cast<int32_t>(static_cast<uint32_t>(bits));
}

struct Area {
    int32_t west, south, east, north, x, y;
    uint32_t aspect;
    uint64_t square;

    PAPERWASP_INLINE uint8_t has(int64_t number) const {
        const uint64_t bits = static_cast<uint64_t>(number);
        const int32_t px = gathered(bits), py = gathered(bits >> 1);
        const uint8_t in_box = (px >= west) & (px <= east) & (py >= south) & (py <= north);
        const uint64_t across = px > x ? static_cast<uint64_t>(int64_t{px} - x) : static_cast<uint64_t>(int64_t{x} - px);
        const uint64_t dx = aspect == 0 ? across : across * aspect >> 32;
        const uint64_t dy = py > y ? static_cast<uint64_t>(int64_t{py} - y) : static_cast<uint64_t>(int64_t{y} - py);
        const uint64_t xx = dx * dx, sum = xx + dy * dy;
        return in_box & ((sum >= xx && sum <= square) | (square == std::numeric_limits<uint64_t>::max()));
    }
};

PAPERWASP_CLONES void fill_area(const int64_t* numbers, size_t rows, Area area, uint64_t* words) {
    fill(words, rows, [=](size_t i) -> uint8_t { return (numbers[i] != std::numeric_limits<int64_t>::min()) & area.has(numbers[i]); });
}

void places_in(In<int64_t> numbers, In<uint64_t> rows, In<int32_t> box, int32_t x, int32_t y, uint32_t aspect, uint64_t square, bool single,
               Out<uint64_t> bitmap) {
    if (box.shape(0) != 4) throw std::invalid_argument("a box has four sides: west, south, east, north");
    const int32_t* side = box.data();
    const Area area{side[0], side[1], side[2], side[3], x, y, aspect, square};
    const int64_t* number = numbers.data();
    const uint64_t* row = rows.data();
    const size_t count = single ? numbers.shape(0) : rows.shape(0), elements = numbers.shape(0);
    check_bitmap(bitmap.shape(0), count);
    uint64_t* words = bitmap.data();
    Clock().spend(static_cast<int64_t>(count));
    const GilRelease release(is_much(2 * (count + elements)));
    if (single)
        fill_area(number, count, area, words);
    else
        fill(words, count, [&](size_t i) -> uint8_t {
            return any_element(row[i], elements, [&](uint64_t place) { return area.has(number[place]) != 0; });
        });
}

}  // namespace

void bind_places(nb::module_& m) {
    m.def("places_in", &places_in, nb::arg("numbers").noconvert(), nb::arg("rows").noconvert(), nb::arg("box").noconvert(), nb::arg("x"),
          nb::arg("y"), nb::arg("aspect"), nb::arg("square"), nb::arg("single"), nb::arg("bitmap").noconvert());
}

}  // namespace paperwasp
