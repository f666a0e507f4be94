// Routes of requests by their bytes: see text_routes.hpp.
#include "http/text_routes.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace paperwasp {
namespace {

// Whether the route of a request that came so often without one is asked for: the second time, which finds one where only the view is new;
// the fourth, since the second has made the KnownRequest that a route is made of; and then less and less often, since most requests that
// have none will never have one.
bool is_asked_for(uint32_t missed) { return missed > 1 && (missed & (missed - 1)) == 0; }

// All tables of the process.
struct Tables {
    std::atomic<uint64_t> changes{0};
    std::mutex mutex;
    std::vector<TextRoutes*> all;
};

Tables& tables() {
    static Tables found;
    return found;
}

}  // namespace

TextRoutes::TextRoutes(size_t most) : most_(most) {
    const std::lock_guard lock(tables().mutex);
    tables().all.push_back(this);
}

TextRoutes::~TextRoutes() {
    const std::lock_guard lock(tables().mutex);
    auto& all = tables().all;
    all.erase(std::remove(all.begin(), all.end(), this), all.end());
}

nb::object TextRoutes::begin(nb::bytes request, const nb::object& socket, nb::object asker, bool alone) {
    std::optional<OwnValues> values = cut_request({request.c_str(), request.size()}, rest_);
    if (!values) return nb::none();
    std::shared_ptr<const FoundRoute> found;
    Table dropped;  // freed without the lock
    {
        const std::lock_guard lock(mutex_);
        if (table_.size() >= most_ && table_.find(rest_) == table_.end()) dropped.swap(table_);
        Entry& entry = table_[rest_];
        if (!entry.route) {
            if (!is_asked_for(++entry.missed)) return nb::none();
            return nb::bytes(rest_.data(), rest_.size());
        }
        found = entry.route;
    }
    PlanPool& pool = *found->route.pool;
    const size_t busy = pool.busy();
    if (busy >= found->route.most_waiting) return nb::none();
    auto made = std::make_unique<RoutedText>(std::move(found), std::make_shared<Client>(socket, std::move(asker)), std::move(*values),
                                             std::string(request.c_str(), request.size()));
    RoutedText* const routed = made.get();
    nb::object object = nb::cast(made.release(), nb::rv_policy::take_ownership);
    if (alone && busy == 0) {
        routed->prepare();
        if (routed->expected_ns() <= pool.long_ns()) {
            routed->is_here = true;
            {
                const GilRelease unlocked(is_much(routed->expected_ns()));
                routed->run();
            }
            return object;
        }
    }
    routed->is_worth_help = pool.add(*routed, object);
    return object;
}

std::shared_ptr<const FoundRoute> TextRoutes::find(std::string_view request, std::string& rest, OwnValues& values) const {
    std::optional<OwnValues> cut = cut_request(request, rest);
    if (!cut) return nullptr;
    values = std::move(*cut);
    const std::lock_guard lock(mutex_);
    const auto found = table_.find(rest);
    return found == table_.end() ? nullptr : found->second.route;
}

void TextRoutes::put(const nb::bytes& rest, nb::object route, nb::bytes head, bool gzip, uint64_t changes) {
    Table dropped;  // freed without the lock, as what is replaced
    auto found = std::make_shared<const FoundRoute>(std::move(route), std::move(head), gzip);
    const std::lock_guard lock(mutex_);
    if (changes != route_changes()) return;
    if (table_.size() >= most_) dropped.swap(table_);
    table_[std::string(rest.c_str(), rest.size())].route.swap(found);
}

TextRoutes::Table TextRoutes::forget() {
    Table dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(table_);
    return dropped;
}

size_t TextRoutes::size() const {
    const std::lock_guard lock(mutex_);
    return table_.size();
}

uint64_t route_changes() { return tables().changes.load(); }

void forget_routes() {
    tables().changes.fetch_add(1);
    std::vector<TextRoutes::Table> dropped;  // what is freed may take tables with it
    const std::lock_guard lock(tables().mutex);
    for (TextRoutes* const each : tables().all) dropped.push_back(each->forget());
}

void bind_text_routes(nb::module_& m) {
    nb::class_<TextRoutes>(m, "TextRoutes")
        .def(nb::init<size_t>(), nb::arg("most"))
        .def(
            "begin", &TextRoutes::begin, nb::arg("request"), nb::arg("socket"), nb::arg("asker"), nb::arg("alone"),
            "Begins to answer a request, as the RoutedText that is returned; bytes by which to `put` its route; None: it is none for this.")
        .def("put", &TextRoutes::put, nb::arg("rest"), nb::arg("route"), nb::arg("head"), nb::arg("gzip"), nb::arg("changes"),
             "Keeps a route, unless `route_changes` is no longer `changes`: then it may be outdated.")
        .def("__len__", &TextRoutes::size);
    m.def("route_changes", &route_changes, "How often `forget_routes` was called.");
    m.def("forget_routes", &forget_routes, "Something has changed that answers depend on.");
}

}  // namespace paperwasp
