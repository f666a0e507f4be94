// Members of JSON objects, cut out without reading their values: what a summary shows of documents as they are stored. The plain twin is in
// tests/oracles/members.py.
#include <string>
#include <string_view>
#include <vector>

#include "core.hpp"
#include "documents/json_text.hpp"

namespace paperwasp {
namespace {

constexpr size_t MOST_NAMES = 64;

// The places of the named members, each with its name, in `found`. False: this is no compact JSON object.
bool find_members(std::string_view object, const std::vector<std::string_view>& names, std::vector<std::string_view>& found) {
    return for_each_member(object, [&](std::string_view key, std::string_view member) {
        for (size_t i = 0; i < names.size(); ++i) {
            if (key == names[i]) found[i] = member;
        }
    });
}

std::vector<std::string_view> views_of(const nb::list& texts) {
    std::vector<std::string_view> views;
    for (nb::handle text : texts) {
        const nb::bytes bytes = nb::cast<nb::bytes>(text);
        views.emplace_back(bytes.c_str(), bytes.size());
    }
    return views;
}

nb::list pick_members(nb::list objects, nb::list names, uint64_t required) {
    if (nb::len(names) > MOST_NAMES) throw std::invalid_argument("at most 64 members can be picked");
    const std::vector<std::string_view> wanted = views_of(names);
    std::vector<std::string_view> found;
    std::string picked;
    nb::list result;
    for (nb::handle object : objects) {
        const nb::bytes bytes = nb::cast<nb::bytes>(object);
        found.assign(wanted.size(), std::string_view());
        bool whole = find_members(std::string_view(bytes.c_str(), bytes.size()), wanted, found);
        picked.assign(1, '{');
        for (size_t i = 0; whole && i < found.size(); ++i) {
            if (found[i].empty()) {
                whole = (required >> i & 1) == 0;
                continue;
            }
            if (picked.size() > 1) picked += ',';
            picked += found[i];
        }
        picked += '}';
        if (whole) {
            result.append(nb::bytes(picked.data(), picked.size()));
        } else {
            result.append(nb::none());
        }
    }
    return result;
}

}  // namespace

void bind_members(nb::module_& m) {
    m.def("pick_members", &pick_members, nb::arg("objects"), nb::arg("names"), nb::arg("required"),
          "Of each compact JSON object, one of the members whose keys are `names` (as JSON, with the colon), in that order. None where"
          " it is no such object, or lacks a member whose bit of `required` is set.");
}

}  // namespace paperwasp
