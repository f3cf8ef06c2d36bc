//! The one table of all routes.

use std::collections::HashSet;
use std::sync::LazyLock;

use axum::Router;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use crate::app::App;
use crate::gate::{Gate, Need, Rule, Time, Wire};
use crate::security::keys::KeyRole;
use crate::{compat, edge, error, live, openai, operations, rest};

struct Entry {
    rule: Rule,
    routes: UtoipaMethodRouter<App>,
}

/// A route, as a test or an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteInfo {
    /// The method, in capitals.
    pub method: String,
    /// The path, with `{name}` for what varies.
    pub path: String,
    /// The role that a caller needs; `None` where anyone may call.
    pub role: Option<KeyRole>,
}

const NOTHING: Need = Need::Nothing;
const READ: Need = Need::Role(KeyRole::Read);
const WRITE: Need = Need::Role(KeyRole::Write);
const APPROVE: Need = Need::Role(KeyRole::Approve);
const ADMIN: Need = Need::Role(KeyRole::Admin);
const OPERATE: Need = Need::Role(KeyRole::Operate);

fn table() -> Vec<Entry> {
    let bounded = |need, routes| Entry { rule: Rule { need, time: Time::Bounded, wire: Wire::Ours }, routes };
    let own_time = |need, routes| Entry { rule: Rule { need, time: Time::Own, wire: Wire::Ours }, routes };
    let shared = |role, time, routes| Entry { rule: Rule { need: Need::Shared(role), time, wire: Wire::Ours }, routes };
    let openai = |need, routes| Entry { rule: Rule { need, time: Time::Bounded, wire: Wire::OpenAi }, routes };
    let openai_model = |need, routes| Entry { rule: Rule { need, time: Time::Own, wire: Wire::OpenAi }, routes };
    vec![
        bounded(NOTHING, routes!(operations::health::health)),
        bounded(NOTHING, routes!(operations::ready::ready)),
        bounded(OPERATE, routes!(operations::metrics::metrics)),
        bounded(NOTHING, routes!(operations::document::document)),
        bounded(NOTHING, routes!(operations::viewer::start)),
        bounded(NOTHING, routes!(operations::viewer::page)),
        bounded(NOTHING, routes!(operations::viewer::file)),
        bounded(NOTHING, routes!(operations::session::page)),
        bounded(NOTHING, routes!(operations::session::exchange)),
        bounded(WRITE, routes!(rest::threads::open::open)),
        bounded(READ, routes!(rest::threads::list::list)),
        bounded(READ, routes!(rest::threads::get::get)),
        bounded(WRITE, routes!(rest::threads::patch::patch)),
        bounded(WRITE, routes!(rest::threads::delete::delete)),
        bounded(WRITE, routes!(rest::threads::fork::fork)),
        bounded(WRITE, routes!(rest::messages::append::append)),
        bounded(READ, routes!(rest::messages::list::list)),
        bounded(READ, routes!(rest::messages::get::get)),
        bounded(WRITE, routes!(rest::messages::replace::replace)),
        bounded(WRITE, routes!(rest::messages::erase::erase)),
        bounded(READ, routes!(rest::context::assemble::assemble)),
        bounded(READ, routes!(rest::context::report::report)),
        bounded(READ, routes!(rest::search::search)),
        bounded(READ, routes!(rest::recall::recall)),
        bounded(READ, routes!(rest::preferences::list::list)),
        bounded(READ, routes!(rest::preferences::get::get)),
        bounded(WRITE, routes!(rest::preferences::put::put)),
        bounded(WRITE, routes!(rest::preferences::delete::delete)),
        bounded(READ, routes!(rest::documents::list::list)),
        bounded(READ, routes!(rest::documents::get::get)),
        bounded(WRITE, routes!(rest::documents::put::put)),
        bounded(WRITE, routes!(rest::documents::delete::delete)),
        bounded(READ, routes!(rest::thread_documents::list::list)),
        bounded(READ, routes!(rest::thread_documents::get::get)),
        bounded(WRITE, routes!(rest::thread_documents::put::put)),
        bounded(WRITE, routes!(rest::thread_documents::delete::delete)),
        bounded(READ, routes!(rest::analytics::analytics)),
        own_time(READ, routes!(rest::export::export)),
        own_time(ADMIN, routes!(rest::import::import)),
        own_time(WRITE, routes!(rest::erase::erase)),
        bounded(READ, routes!(rest::agents::list::list)),
        own_time(WRITE, routes!(rest::agents::ask::ask)),
        bounded(READ, routes!(rest::turns::get::get)),
        bounded(WRITE, routes!(rest::turns::cancel::cancel)),
        bounded(READ, routes!(rest::approvals::list::list)),
        bounded(READ, routes!(rest::approvals::get::get)),
        own_time(APPROVE, routes!(rest::approvals::decide::decide)),
        own_time(READ, routes!(live::events::events)),
        own_time(READ, routes!(live::socket::socket)),
        openai(WRITE, routes!(openai::conversations::create::create)),
        openai(READ, routes!(openai::conversations::retrieve::retrieve)),
        openai(WRITE, routes!(openai::conversations::update::update)),
        openai(WRITE, routes!(openai::conversations::delete::delete)),
        openai(WRITE, routes!(openai::conversation_items::create::create)),
        openai(READ, routes!(openai::conversation_items::list::list)),
        openai(READ, routes!(openai::conversation_items::retrieve::retrieve)),
        openai(WRITE, routes!(openai::conversation_items::delete::delete)),
        openai_model(WRITE, routes!(openai::responses::create::create)),
        openai(READ, routes!(openai::responses::input_tokens::count)),
        openai_model(WRITE, routes!(openai::responses::compact::compact)),
        openai(READ, routes!(openai::responses::retrieve::retrieve)),
        openai(WRITE, routes!(openai::responses::delete::delete)),
        openai(WRITE, routes!(openai::responses::cancel::cancel)),
        openai(READ, routes!(openai::responses::input_items::list)),
        openai_model(WRITE, routes!(openai::chat::complete)),
        openai(READ, routes!(openai::chat::stored::list::list)),
        openai(READ, routes!(openai::chat::stored::retrieve::retrieve)),
        openai(WRITE, routes!(openai::chat::stored::update::update)),
        openai(WRITE, routes!(openai::chat::stored::delete::delete)),
        openai(READ, routes!(openai::chat::stored::messages::messages)),
        openai(READ, routes!(openai::models::list)),
        openai(READ, routes!(openai::models::retrieve)),
        openai(READ, routes!(openai::models::retrieve_assistant)),
        openai_model(READ, routes!(openai::embeddings::embeddings)),
        shared(KeyRole::Read, Time::Bounded, routes!(compat::history::history)),
        shared(KeyRole::Write, Time::Bounded, routes!(compat::delete::delete)),
        shared(KeyRole::Read, Time::Bounded, routes!(compat::history::history_with)),
        shared(KeyRole::Write, Time::Bounded, routes!(compat::delete::delete_with)),
        shared(KeyRole::Write, Time::Own, routes!(compat::chat::chat)),
        shared(KeyRole::Write, Time::Own, routes!(compat::chat::chat_with)),
        shared(KeyRole::Write, Time::Bounded, routes!(compat::clear::clear)),
        shared(KeyRole::Write, Time::Bounded, routes!(compat::clear::clear_with)),
        shared(KeyRole::Read, Time::Bounded, routes!(compat::questions::route)),
        shared(KeyRole::Read, Time::Bounded, routes!(compat::questions::route_with)),
        shared(KeyRole::Read, Time::Bounded, routes!(compat::questions::arrivals)),
        shared(KeyRole::Read, Time::Bounded, routes!(compat::questions::arrivals_with)),
        shared(KeyRole::Read, Time::Bounded, routes!(compat::questions::stations)),
        shared(KeyRole::Read, Time::Bounded, routes!(compat::questions::stations_with)),
        shared(KeyRole::Read, Time::Bounded, routes!(compat::preferences::preferences)),
        shared(KeyRole::Read, Time::Bounded, routes!(compat::preferences::preferences_with)),
        bounded(NOTHING, routes!(compat::health::health)),
        bounded(NOTHING, routes!(compat::page::start)),
        bounded(NOTHING, routes!(compat::page::start_with)),
    ]
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Threadkeep",
        description = "Conversations of assistants: kept, found again, and handed back as the context of the next turn.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(error::ErrorEnvelope<'_>, error::ErrorBody<'_>))
)]
struct Document;

/// All routes, ready to serve.
pub(crate) fn router(app: &App) -> Router {
    let mut router = OpenApiRouter::<App>::new();
    for Entry { rule, routes: (schemas, paths, methods) } in table() {
        router = router.routes((schemas, paths, methods.route_layer(Gate::new(app, rule))));
    }
    let (router, _) = router.split_for_parts();
    router.fallback(edge::no_route).method_not_allowed_fallback(edge::no_method).with_state(app.clone())
}

/// Whether a route's path begins with a name.
pub(crate) fn begins_route(name: &str) -> bool {
    static BEGINNINGS: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let paths = table().into_iter().flat_map(|entry| entry.routes.1.paths.into_keys());
        paths.filter_map(|path| path.trim_start_matches('/').split('/').next().map(str::to_owned)).collect()
    });
    BEGINNINGS.contains(name)
}

/// The table without its actions.
pub(crate) fn infos() -> Vec<RouteInfo> {
    let mut infos = Vec::new();
    for Entry { rule, routes: (_, paths, _) } in table() {
        let role = match rule.need {
            Need::Nothing => None,
            Need::Role(role) | Need::Shared(role) => Some(role),
        };
        for (path, item) in &paths.paths {
            let operations = [
                ("GET", &item.get),
                ("POST", &item.post),
                ("PUT", &item.put),
                ("PATCH", &item.patch),
                ("DELETE", &item.delete),
            ];
            let methods = operations.into_iter().filter(|(_, operation)| operation.is_some());
            infos.extend(methods.map(|(method, _)| RouteInfo { method: method.to_owned(), path: path.clone(), role }));
        }
    }
    infos
}

/// What the routes say of themselves.
pub(crate) fn described() -> utoipa::openapi::OpenApi {
    let mut router = OpenApiRouter::<App>::with_openapi(Document::openapi());
    for entry in table() {
        router = router.routes(entry.routes);
    }
    let mut document = router.into_openapi();
    if let Some(components) = &mut document.components {
        let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        components.add_security_scheme("key", scheme);
    }
    document
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Of two shapes with one name the document would show one, and the other's route would seem to answer with it.
    #[test]
    fn no_two_shapes_share_a_name() {
        let mut shapes = HashMap::new();
        for (name, shape) in table().into_iter().flat_map(|entry| entry.routes.0) {
            let shape = serde_json::to_value(shape).unwrap();
            let before = shapes.entry(name.clone()).or_insert_with(|| shape.clone());
            assert_eq!(*before, shape, "{name}");
        }
        assert!(shapes.len() > 80, "{}", shapes.len());
    }
}
