// Whether the update in a text of JSON names a field twice, or gives an operation of a field twice: `{"fields": {"f": {"add": …, "add":
// …}}}`. A decoder that makes dictionaries keeps the last only. The plain twin is in tests/oracles/repeated_names.py.
//
// The text is one that has been decoded. Names are compared as they are written: one with an escape is another than one without.
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core.hpp"
#include "documents/json_text.hpp"

namespace paperwasp {
namespace {

constexpr size_t ROOT = 1, FIELDS = 2, OPERATIONS = 3;
constexpr std::string_view FIELDS_NAME = "\"fields\"";

class Look {
  public:
    explicit Look(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

    bool repeats() {
        for (; at_ < end_; ++at_) {
            switch (*at_) {
                case '"':
                    if (!pass_string()) return false;
                    break;
                case '{':
                case '[':
                    ++depth_;
                    if (is_looked_at()) names().clear();
                    break;
                case '}':
                case ']':
                    if (is_looked_at() && has_twice()) return true;
                    if (depth_ > 0) --depth_;
                    break;
                default:
                    break;
            }
        }
        return false;
    }

  private:
    // Leaves `at_` at the last byte of the string. False: it does not end.
    bool pass_string() {
        const char* behind = after_string(at_, end_);
        if (behind == nullptr) return false;
        if (depth_ == ROOT || is_looked_at()) {
            const std::string_view name(at_, static_cast<size_t>(behind - at_));
            while (behind < end_ && (*behind == ' ' || *behind == '\t' || *behind == '\n' || *behind == '\r')) ++behind;
            const bool is_name = behind < end_ && *behind == ':';
            if (is_name && depth_ == ROOT) is_in_fields_ = name == FIELDS_NAME;
            if (is_name && depth_ != ROOT) names().push_back(name);
        }
        at_ = behind - 1;
        return true;
    }

    bool is_looked_at() const { return is_in_fields_ && (depth_ == FIELDS || depth_ == OPERATIONS); }

    std::vector<std::string_view>& names() { return names_[depth_ - FIELDS]; }

    bool has_twice() {
        std::vector<std::string_view>& given = names();
        if (given.size() < 2) return false;
        std::sort(given.begin(), given.end());
        return std::adjacent_find(given.begin(), given.end()) != given.end();
    }

    const char* at_;
    const char* end_;
    size_t depth_ = 0;
    bool is_in_fields_ = false;
    std::array<std::vector<std::string_view>, 2> names_;
};

bool repeats_names(nb::bytes text) {
    const GilRelease release(is_much(text.size()));
    return Look(std::string_view(text.c_str(), text.size())).repeats();
}

}  // namespace

void bind_repeated_names(nb::module_& m) {
    m.def("repeats_names", &repeats_names, nb::arg("text"),
          "Whether an update in JSON names a field, or an operation of a field, twice: see repeated_names.cpp.");
}

}  // namespace paperwasp
