// The words of a user's text: see plan_text.hpp.
#include "plans/plan_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace paperwasp {
namespace {

// What a character is in a text of a user.
enum Kind : uint8_t { OTHER, SPACE, WITHIN, ALPHANUMERIC };

struct Kinds {
    uint8_t of[256];
    constexpr Kinds() : of() {
        for (int c = '0'; c <= '9'; ++c) of[c] = ALPHANUMERIC;
        for (int c = 'a'; c <= 'z'; ++c) of[c] = ALPHANUMERIC;
        for (int c = 'A'; c <= 'Z'; ++c) of[c] = ALPHANUMERIC;
        for (const char c : {'-', '_', '.', ',', '\'', '/', '=', '&', '@', '#', '%', '$', '~', '?', '|', '^', '\\', '`'})
            of[static_cast<uint8_t>(c)] = WITHIN;
        of[' '] = SPACE;
    }
};
constexpr Kinds KINDS;

struct Letters {
    uint32_t first, last;
};

// Letters beyond ASCII: of Latin, Greek, Cyrillic, Hebrew, Arabic, Japanese, Chinese and Korean. They rise.
constexpr Letters LETTERS[] = {
    {0xC0, 0xD6},     {0xD8, 0xF6},     {0xF8, 0x24F},    {0x370, 0x373},   {0x376, 0x377},   {0x37B, 0x37D},
    {0x386, 0x386},   {0x388, 0x38A},   {0x38C, 0x38C},   {0x38E, 0x3A1},   {0x3A3, 0x3F5},   {0x3F7, 0x481},
    {0x48A, 0x52F},   {0x5D0, 0x5EA},   {0x620, 0x64A},   {0x671, 0x6D3},   {0x1E00, 0x1EFF}, {0x3041, 0x3096},
    {0x30A1, 0x30FA}, {0x30FC, 0x30FE}, {0x3400, 0x4DBF}, {0x4E00, 0x9FEF}, {0xAC00, 0xD7A3},
};

// A reader of a text, which is UTF-8.
class TermReader {
  public:
    TermReader(std::string_view text, Kind least) : text_(text), least_(least) {}

    // Adds all terms. False: there is more in the text.
    bool read(std::vector<TextTerm>& terms) {
        while (skip_spaces()) {
            TextTerm& term = terms.emplace_back();
            if (!(text_[at_] == '"' ? read_quoted(term) : read_word(term))) return false;
            if (at_ < text_.size() && text_[at_] != ' ') return false;
        }
        return true;
    }

  private:
    // False at the end.
    bool skip_spaces() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
        return at_ < text_.size();
    }

    bool read_word(TextTerm& term) {
        const size_t start = at_;
        if (of_word(ALPHANUMERIC) == 0) return false;
        for (size_t bytes = 1; at_ < text_.size() && (bytes = of_word(least_)) > 0;) at_ += bytes;
        term.push_back(text_.substr(start, at_ - start));
        return true;
    }

    // Two words at least.
    bool read_quoted(TextTerm& term) {
        if (least_ == ALPHANUMERIC) return false;
        for (++at_; skip_spaces() && text_[at_] != '"';) {
            if (!read_word(term)) return false;
            if (at_ == text_.size() || (text_[at_] != ' ' && text_[at_] != '"')) return false;
        }
        return at_++ < text_.size() && term.size() > 1;
    }

    // How many bytes of a word the character here has, of this kind or a plainer one; 0: it is none of a word.
    size_t of_word(Kind least) const {
        const auto first = static_cast<uint8_t>(text_[at_]);
        return first < 0x80 ? KINDS.of[first] >= least : of_letter(first);
    }

    size_t of_letter(uint8_t first) const {
        const size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 0;
        if (bytes == 0 || at_ + bytes > text_.size()) return 0;
        uint32_t code = first & (bytes == 2 ? 0x1F : 0x0F);
        for (size_t i = 1; i < bytes; ++i) code = code << 6 | (static_cast<uint8_t>(text_[at_ + i]) & 0x3F);
        const Letters* const found = std::lower_bound(std::begin(LETTERS), std::end(LETTERS), code,
                                                      [](const Letters& letters, uint32_t wanted) { return letters.last < wanted; });
        return found != std::end(LETTERS) && found->first <= code ? bytes : 0;
    }

    const std::string_view text_;
    const Kind least_;
    size_t at_ = 0;
};

}  // namespace

std::vector<TextTerm> plain_terms(std::string_view text, bool is_phrase) {
    std::vector<TextTerm> terms;
    if (!TermReader(text, is_phrase ? ALPHANUMERIC : WITHIN).read(terms)) return {};
    if (!is_phrase) return terms;
    TextTerm phrase;
    for (const TextTerm& term : terms) phrase.push_back(term[0]);
    if (phrase.size() < 2) return {};
    return {std::move(phrase)};
}

}  // namespace paperwasp
