// Hits that show values of attributes: see column_page.hpp.
#include "plans/column_page.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <variant>

#include "attributes/sorting.hpp"
#include "documents/json_number.hpp"
#include "documents/json_string.hpp"

namespace paperwasp {
namespace {

constexpr int64_t VALUE_STEPS = 50;  // what a value costs, about, in nanoseconds

// Appends a number as JSON. False: it stands for none.
template <typename T>
bool append_value(T value, std::string& to) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(value)) return false;
        if (std::isfinite(value))
            append_number(value, to);
        else
            to += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    } else {
        if (value == std::numeric_limits<T>::min()) return false;
        to += std::to_string(value);
    }
    return true;
}

// Appends a string. False: it stands for none.
bool append_string(std::string_view text, std::string& to) {
    if (text.empty()) return false;
    to += '"';
    escape(text, to);
    to += '"';
    return true;
}

// Appends a value with its key. False: there is no such row, or its string is not known, or no text.
bool append_shown(const SnapshotColumn& column, uint32_t lid, const std::string& key, size_t start, std::string& to) {
    return std::visit(
        [&](const auto& values) {
            if (lid >= values.size()) return false;
            const auto value = value_now(values.data() + lid);
            std::string buffer;
            std::optional<std::string_view> text;
            if (column.strings != nullptr && !(text = column.strings->text(static_cast<uint64_t>(value), buffer))) return false;
            const size_t before = to.size();
            append_member(key, start, to);
            if (column.are_truths)
                to += value > 0 ? "true" : "false";
            else if (!(text ? append_string(*text, to) : append_value(value, to)))
                to.resize(before);
            return true;
        },
        column.values);
}

}  // namespace

bool ColumnPage::append_hit(uint32_t lid, std::string_view relevance, const uint8_t* gid, std::string& to, Clock& clock) const {
    clock.spend(VALUE_STEPS * static_cast<int64_t>(columns_.size() + 1));
    const size_t before = to.size();
    append_head(gid, relevance, form_, to);
    const bool is_whole = append_fields(form_, to, [&](size_t start) {
        for (size_t i = 0; i < columns_.size(); ++i)
            if (!append_shown(*columns_[i], lid, form_.keys[i], start, to)) return false;
        return true;
    });
    if (!is_whole) to.resize(before);
    return is_whole;
}

}  // namespace paperwasp
