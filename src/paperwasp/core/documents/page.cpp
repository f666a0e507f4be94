// The hits of a page, rendered: the JSON that a search result has for each hit, where it shows documents as they are stored by row, or
// values of attributes. The plain twin is in tests/oracles/page.py.
#include "documents/page.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "clock.hpp"
#include "core.hpp"
#include "documents/json_text.hpp"

namespace paperwasp {
namespace {

constexpr size_t MOST_NAMES = 64;
constexpr size_t MANY_HITS = 100;  // beyond this, other threads may run meanwhile

bool is_empty_value(std::string_view value) { return value == "\"\"" || value == "[]" || value == "{}"; }

// Whether there may be members that are left out. The same bytes may be in a text, or deeper.
bool may_leave_out(std::string_view object, const PageForm& form) {
    return object.find(":\"\"") != object.npos || object.find(":[]") != object.npos || object.find(":{}") != object.npos ||
           std::any_of(form.signs.begin(), form.signs.end(), [&](const std::string& sign) { return object.find(sign) != object.npos; });
}

size_t place_of(std::string_view key, const PageForm& form) {
    return static_cast<size_t>(std::find(form.keys.begin(), form.keys.end(), key) - form.keys.begin());
}

// Whether a member is left out since its value is empty, or stands for none.
bool is_left_out(std::string_view key, std::string_view member, size_t place, const PageForm& form) {
    const std::string_view value = member.substr(key.size());
    if (place >= form.keys.size()) return is_empty_value(value);
    if (!form.unset[place].empty() && value == form.unset[place]) return true;
    return (form.shows_empty >> place & 1) == 0 && is_empty_value(value);
}

bool append_all(std::string_view object, const PageForm& form, size_t start, std::string& to) {
    if (object.size() < 2 || object.front() != '{' || object.back() != '}') return false;
    if (!may_leave_out(object, form)) {
        if (object.size() > 2) append_member(object.substr(1, object.size() - 2), start, to);
        return true;
    }
    return for_each_member(object, [&](std::string_view key, std::string_view member) {
        if (!is_left_out(key, member, place_of(key, form), form)) append_member(member, start, to);
    });
}

bool append_picked(std::string_view object, const PageForm& form, std::vector<std::string_view>& found, size_t start, std::string& to) {
    found.assign(form.keys.size(), std::string_view());
    const bool is_object = for_each_member(object, [&](std::string_view key, std::string_view member) {
        if (const size_t place = place_of(key, form); place < found.size()) found[place] = member;
    });
    if (!is_object) return false;
    for (size_t i = 0; i < found.size(); ++i) {
        if (found[i].empty()) {
            if ((form.required >> i & 1) != 0) return false;
        } else if (!is_left_out(form.keys[i], found[i], i, form)) {
            append_member(found[i], start, to);
        }
    }
    return true;
}

// A text as JSON writes it, without quotes.
void append_escaped(std::string_view text, std::string& to) {
    constexpr char HEX[] = "0123456789abcdef";
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            to += '\\';
            to += c;
        } else if (code >= 0x20) {
            to += c;
        } else if (const size_t place = std::string_view("\b\t\n\f\r").find(c); place != std::string_view::npos) {
            to += '\\';
            to += "btnfr"[place];
        } else {
            to += "\\u00";
            to += HEX[code >> 4];
            to += HEX[code & 15];
        }
    }
}

void append_hex(const uint8_t* gid, std::string& to) {
    constexpr char HEX[] = "0123456789abcdef";
    for (size_t i = 0; i < GID_BYTES; ++i) {
        to += HEX[gid[i] >> 4];
        to += HEX[gid[i] & 15];
    }
}

// The values of a compact JSON array of `count` values, in their order. `array` has to stay where it is.
std::vector<std::string_view> values_of(std::string_view array, size_t count, const char* problem) {
    std::vector<std::string_view> values;
    if (array.size() < 2 || array.front() != '[' || array.back() != ']') throw nb::value_error("no JSON array of values or numbers");
    const char* const end = array.data() + array.size();
    for (const char* at = array.data() + 1; array.size() > 2;) {
        const char* after = after_value(at, end);
        if (after == nullptr || after == at) throw nb::value_error("no JSON array of values or numbers");
        values.emplace_back(at, static_cast<size_t>(after - at));
        if (*after != ',') {
            if (*after != ']' || after + 1 != end) throw nb::value_error("no JSON array of values or numbers");
            break;
        }
        at = after + 1;
    }
    if (values.size() != count) throw nb::value_error(problem);
    return values;
}

constexpr char OTHER_RELEVANCES[] = "a relevance for each hit is needed";

std::string_view view_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// The bytes of each hit that ends at these places; None where it ends where it starts.
nb::list hits_of(const std::string& text, const std::vector<size_t>& ends) {
    nb::list hits;
    size_t start = 0;
    for (const size_t end : ends) {
        hits.append(end == start ? nb::object(nb::none()) : nb::object(nb::bytes(text.data() + start, end - start)));
        start = end;
    }
    return hits;
}

}  // namespace

void append_head(std::string_view id, std::string_view relevance, const PageForm& form, std::string& to) {
    to += "{\"id\":\"";
    to += id;
    to += "\",\"relevance\":";
    to += relevance;
    to += form.source;
}

void append_head(const uint8_t* gid, std::string_view relevance, const PageForm& form, std::string& to) {
    to += "{\"id\":\"";
    to += form.id_prefix;
    append_hex(gid, to);
    to += "\",\"relevance\":";
    to += relevance;
    to += form.source;
}

bool Page::append_hit(uint32_t lid, std::string_view relevance, const uint8_t* gid, std::string& to, Clock& clock) {
    clock.spend(HIT_STEPS);
    // The writer may set a byte of `changed` meanwhile: the row is shown as it was, or read from the columns.
    if (lid < first_lid_ || lid >= changed_size_ || __atomic_load_n(changed_ + lid, __ATOMIC_RELAXED) != 0) return false;
    if (!read_row(rows_.record(lid), row_)) return false;
    clock.spend(ROW_BYTE_STEPS * int64_t{row_.plain_bytes});
    if (!unpack_row(row_, json_)) return false;
    const size_t before = to.size();
    if (form_.id_prefix.empty()) {
        id_.clear();
        append_escaped(row_.id, id_);
        append_head(id_, relevance, form_, to);
    } else {
        append_head(gid, relevance, form_, to);
    }
    if (append_fields(form_, to, [&](size_t start) { return append_members(start, to); })) return true;
    to.resize(before);
    return false;
}

bool Page::append_members(size_t start, std::string& to) {
    if (form_.id_prefix.empty()) {
        append_member("\"documentid\":\"", start, to);
        to += id_;
        to += '"';
    }
    return form_.as_stored ? append_all(json_, form_, start, to) : append_picked(json_, form_, found_, start, to);
}

namespace {

nb::list render_page(const RowFiles& rows, In<uint32_t> lids, nb::bytes relevances, In<uint8_t> changed, uint32_t first_lid,
                     In<uint8_t> gids, const PageForm& form) {
    const size_t count = lids.size();
    if (!form.id_prefix.empty() && gids.size() != count * GID_BYTES) throw nb::value_error("a gid for each hit is needed");
    const auto scores = values_of(view_of(relevances), count, OTHER_RELEVANCES);
    Page page(rows, form, changed.data(), changed.size(), first_lid);
    std::string text;
    std::vector<size_t> ends;
    {
        Clock clock;
        const GilRelease unlocked(count > MANY_HITS);
        for (size_t hit = 0; hit < count; ++hit) {
            if (scores[hit] != "null") page.append_hit(lids.data()[hit], scores[hit], gids.data() + hit * GID_BYTES, text, clock);
            ends.push_back(text.size());
        }
    }
    return hits_of(text, ends);
}

// Hits that show values of attributes: `values` has for each key of the form the JSON array of the values of all hits. A value that is
// null, or empty where its key does not show that, is left out.
nb::list render_values(const nb::list& values, nb::bytes relevances, In<uint8_t> gids, const PageForm& form) {
    const size_t count = gids.size() / GID_BYTES;
    if (gids.size() != count * GID_BYTES || form.id_prefix.empty()) throw nb::value_error("a gid for each hit is needed");
    if (values.size() != form.keys.size()) throw nb::value_error("an array of values for each key is needed");
    const auto scores = values_of(view_of(relevances), count, OTHER_RELEVANCES);
    std::vector<std::vector<std::string_view>> columns;
    for (nb::handle array : values) {
        if (!nb::isinstance<nb::bytes>(array)) throw nb::value_error("no JSON array of values or numbers");
        columns.push_back(values_of(view_of(nb::borrow<nb::bytes>(array)), count, "a value for each hit is needed"));
    }
    std::string text;
    std::vector<size_t> ends;
    for (size_t hit = 0; hit < count; ++hit) {
        if (scores[hit] != "null") {
            append_head(gids.data() + hit * GID_BYTES, scores[hit], form, text);
            append_fields(form, text, [&](size_t start) {
                for (size_t i = 0; i < columns.size(); ++i) {
                    const std::string_view value = columns[i][hit];
                    if (value == "null" || (is_empty_value(value) && (form.shows_empty >> i & 1) == 0)) continue;
                    append_member(form.keys[i], start, text);
                    text += value;
                }
                return true;
            });
        }
        ends.push_back(text.size());
    }
    return hits_of(text, ends);
}

std::string text_of(const nb::bytes& bytes) { return std::string(view_of(bytes)); }

void make_form(PageForm* self, const nb::list& keys, bool as_stored, uint64_t required, uint64_t shows_empty, const nb::list& unset,
               const nb::bytes& source, const nb::bytes& type, const nb::bytes& id_prefix) {
    if (keys.size() > MOST_NAMES) throw nb::value_error("at most 64 members can be shown");
    if (unset.size() != keys.size()) throw nb::value_error("a value that stands for none, or no bytes, for each key is needed");
    new (self) PageForm();
    for (nb::handle key : keys) self->keys.push_back(text_of(nb::cast<nb::bytes>(key)));
    for (nb::handle value : unset) self->unset.push_back(text_of(nb::cast<nb::bytes>(value)));
    for (const std::string& value : self->unset) {
        std::string sign = ":" + value;
        if (sign.size() > 1 && std::find(self->signs.begin(), self->signs.end(), sign) == self->signs.end()) {
            self->signs.push_back(std::move(sign));
        }
    }
    self->as_stored = as_stored;
    self->required = required;
    self->shows_empty = shows_empty;
    self->source = text_of(source);
    self->type = text_of(type);
    self->id_prefix = text_of(id_prefix);
}

}  // namespace

void bind_page(nb::module_& m) {
    nb::class_<PageForm>(m, "PageForm")
        .def("__init__", &make_form, nb::arg("keys"), nb::arg("as_stored"), nb::arg("required"), nb::arg("shows_empty"), nb::arg("unset"),
             nb::arg("source"), nb::arg("type"), nb::arg("id_prefix"));
    m.def("page", &render_page, nb::arg("rows"), nb::arg("lids"), nb::arg("relevances"), nb::arg("changed"), nb::arg("first_lid"),
          nb::arg("gids"), nb::arg("form"), "The JSON of each hit; None where it cannot be made of its row. Twin: tests.oracles.page.page");
    m.def("value_page", &render_values, nb::arg("values"), nb::arg("relevances"), nb::arg("gids"), nb::arg("form"),
          "The JSON of each hit; None where its relevance is no number. Twin: tests.oracles.page.value_page");
}

}  // namespace paperwasp
