// Requests that are answered without Python: see text_route.hpp.
#include "http/text_route.hpp"

#include <algorithm>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include "clock.hpp"
#include "plans/plan_text.hpp"

namespace paperwasp {
namespace {

// The bounds of text/linguistics/detection.py: words of other languages than English, and the first characters, among which they are
// counted.
constexpr uint32_t FOREIGN_WORDS = 2;
constexpr size_t LOOKED_AT_CHARACTERS = 256;

void make_route(TextRoute* self, nb::handle plan, nb::handle snapshot, nb::handle rows, uint32_t hits, uint32_t offset, int64_t timeout_ns,
                double soft_share, const std::optional<In<uint64_t>>& accept, double attribute, const std::optional<SearchTuple>& near,
                nb::handle foreign, bool keeps_long, nb::handle pool, size_t most_waiting, nb::object answers) {
    new (self) TextRoute();
    self->plan = nb::cast<const Plan*>(plan);
    self->snapshot = nb::cast<const Snapshot*>(snapshot);
    self->rows = nb::cast<const RowFiles*>(rows);
    self->pool = nb::cast<PlanPool*>(pool);
    if (!foreign.is_none()) self->foreign = nb::cast<const WordSet*>(foreign);
    if (accept && accept->size() != self->snapshot->live->size())
        throw nb::value_error("the bitmap does not cover the documents of the snapshot");
    if ((hits == 0 && self->plan->shown.facets.empty()) || timeout_ns <= 0)
        throw nb::value_error("a page has hits or groups, and its search takes time");
    self->hits = hits;
    self->offset = offset;
    self->timeout_ns = timeout_ns;
    self->soft_share = soft_share;
    self->accept = accept;
    self->attribute = attribute;
    if (near.has_value() != self->plan->near.has_value()) throw nb::value_error("how a graph is searched, of a plan that searches one");
    if (near) self->near = search_of(*near);
    self->keeps_long = keeps_long;
    self->most_waiting = most_waiting;
    self->answers = std::move(answers);
    for (const nb::handle owner : {plan, snapshot, rows, foreign, pool}) self->owners.push_back(nb::borrow(owner));
}

}  // namespace

FoundRoute::FoundRoute(nb::object given, nb::bytes first_lines, bool gzip)
    : object(std::move(given)),
      route(nb::cast<const TextRoute&>(object)),
      head(first_lines.c_str(), first_lines.size()),
      waits_for_gzip(gzip) {}

RoutedText::RoutedText(std::shared_ptr<const FoundRoute> route, std::shared_ptr<const Client> client, OwnValues values, std::string request)
    : found_(std::move(route)),
      client_(std::move(client)),
      route_(found_->route),
      values_(std::move(values)),
      request_(std::move(request)),
      begun_ns_(monotonic_ns()) {}

void RoutedText::prepare() noexcept {
    try {
        if (!prepare_run()) run_.reset();
    } catch (...) {  // the general way says what is wrong
        run_.reset();
    }
}

// False: it is to be answered the general way.
bool RoutedText::prepare_run() {
    const Plan& plan = *route_.plan;
    const std::string& text = values_.text;
    const int64_t search_ns = static_cast<int64_t>(static_cast<double>(route_.timeout_ns) * route_.soft_share);
    if (monotonic_ns() >= begun_ns_ + search_ns) return false;
    if (route_.foreign != nullptr) {
        const size_t start = std::min(text.find_first_not_of(' '), text.size());
        const size_t size = std::min(text.size() - start, LOOKED_AT_CHARACTERS);
        if (route_.foreign->has(reinterpret_cast<const uint8_t*>(text.data()) + start, size, FOREIGN_WORDS)) return false;
    }
    const std::vector<TextTerm> terms = plain_terms(text, plan.words.composite == PlanWords::Composite::PHRASE);
    size_t words = 0;
    for (const TextTerm& term : terms) words += term.size();
    if (words > plan.words.most_words || (words == 0) != plan.words.indexes.empty()) return false;
    run_ = std::make_unique<PlanRun>(plan, *route_.snapshot, *route_.rows, route_.hits, route_.offset);
    run_->end_at(begun_ns_ + search_ns, begun_ns_ + route_.timeout_ns);
    if (route_.accept) run_->look_within(*route_.accept, route_.attribute);
    std::vector<UnknownWord> unknown;
    if (run_->fill_terms(terms, unknown) != PlanRun::Filled::READY) return false;
    if (route_.near && run_->fill_vector(values_.vector, *route_.near) != PlanRun::Filled::READY) return false;
    takes_long_ = route_.keeps_long && run_->expected_ns() > route_.pool->long_ns();
    return !takes_long_;
}

void RoutedText::run() noexcept {
    if (!run_) return;
    has_run_ = true;
    run_->run();
    if (!has_answer() || found_->waits_for_gzip) return;
    try {
        send(run_->answer());
    } catch (...) {  // no memory, before anything was written
    }
}

void RoutedText::send(std::string_view body) {
    unsent_ = client_->socket.send(found_->head, body, sent_bytes_);
    body_bytes_ = body.size();
    is_sent_ = true;
    ended_ns_ = monotonic_ns();
}

std::unique_ptr<PlanRun> RoutedText::take_run() {
    if (run_)
        for (const nb::object& owner : route_.owners) run_->owners.push_back(owner);
    return std::move(run_);
}

void bind_text_route(nb::module_& m) {
    nb::class_<TextRoute>(m, "TextRoute")
        .def("__init__", &make_route, nb::arg("plan"), nb::arg("snapshot"), nb::arg("rows"), nb::arg("hits"), nb::arg("offset"),
             nb::arg("timeout_ns"), nb::arg("soft_share"), nb::arg("accept").none(), nb::arg("attribute"), nb::arg("near").none(),
             nb::arg("foreign").none(), nb::arg("keeps_long"), nb::arg("pool"), nb::arg("most_waiting"), nb::arg("answers"))
        .def_ro("answers", &TextRoute::answers);
    nb::class_<RoutedText>(m, "RoutedText")
        .def_prop_ro("route", [](const RoutedText& self) { return self.route().object; })
        .def_prop_ro("asker", [](const RoutedText& self) { return self.client().asker; })
        .def_prop_ro(
            "request", [](const RoutedText& self) { return nb::bytes(self.request().data(), self.request().size()); },
            "The bytes of the request.")
        .def_prop_ro("text", [](const RoutedText& self) { return nb::str(self.values().text.data(), self.values().text.size()); })
        .def_prop_ro("vector", [](const RoutedText& self) { return nb::bytes(self.values().vector.data(), self.values().vector.size()); })
        .def_ro("is_here", &RoutedText::is_here, "Whether it was answered, or left, where it came, and is not with the pool.")
        .def_ro("is_worth_help", &RoutedText::is_worth_help, "Whether so much waits for the threads that it is worth helping them.")
        .def_prop_ro("is_sent", &RoutedText::is_sent, "Whether the answer was written; if not, it is to be found otherwise.")
        .def_prop_ro("waits_for_gzip", &RoutedText::waits_for_gzip, "Whether the answer is to be compressed, and sent then.")
        .def_prop_ro(
            "answer", [](const RoutedText& self) { return nb::bytes(self.answer().data(), self.answer().size()); },
            "Of a request whose answer is to be compressed.")
        .def(
            "send",
            [](RoutedText& self, const nb::bytes& body) {
                if (!self.waits_for_gzip()) throw nb::value_error("no answer waits to be compressed");
                self.send({body.c_str(), body.size()});
            },
            nb::arg("body"), "Writes the answer, which is compressed.")
        .def_prop_ro("has_run", &RoutedText::has_run)
        .def_prop_ro("takes_long", &RoutedText::takes_long, "Whether it was left because it takes long: its answer may be kept.")
        .def_prop_ro(
            "unsent", [](const RoutedText& self) { return nb::bytes(self.unsent().data(), self.unsent().size()); },
            "What the system did not take of the answer.")
        .def_prop_ro("is_unsent", [](const RoutedText& self) { return !self.unsent().empty(); })
        .def_prop_ro("body_bytes", &RoutedText::body_bytes)
        .def_prop_ro("sent_bytes", &RoutedText::sent_bytes)
        .def_prop_ro("total", &RoutedText::total)
        .def_prop_ro("shown", &RoutedText::shown)
        .def_prop_ro("writing_ns", &RoutedText::writing_ns)
        .def_prop_ro("begun_ns", &RoutedText::begun_ns)
        .def_prop_ro("elapsed_ns", &RoutedText::elapsed_ns)
        .def("take_run", &RoutedText::take_run, "The PlanRun of an answer that was not written; None: there is none.");
}

}  // namespace paperwasp
