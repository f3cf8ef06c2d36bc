//! The routes of all doors, as one router and one document.

use std::collections::HashSet;
use std::sync::LazyLock;

use axum::Router;
use threadkeep_service::AssistantNameError;
use utoipa::OpenApi;
use utoipa::openapi::Deprecated;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::door::{Door, Route, RouteInfo};
use crate::gate::Gate;
use crate::{compat, edge, error, live, openai, operations, rest};

/// The doors that every server has.
pub(crate) fn doors() -> Vec<Door> {
    vec![operations::door(), rest::door(), live::door(), openai::door(), compat::door()]
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

/// All routes of the server's doors, ready to serve.
pub(crate) fn router(app: &App) -> Router {
    let mut router = OpenApiRouter::<App>::new();
    for door in app.doors() {
        for Route { rule, actions: (schemas, paths, methods) } in door.routes.clone() {
            let methods = methods.route_layer(Gate::new(app, rule, door.wire));
            for alias in door.aliases.iter().filter(|alias| paths.paths.contains_key(alias.canonical)) {
                router = router.route(alias.path, methods.clone());
            }
            router = router.routes((schemas, paths, methods));
        }
    }
    let (router, _) = router.split_for_parts();
    router.fallback(edge::no_route).method_not_allowed_fallback(edge::no_method).with_state(app.clone())
}

/// Checks that an assistant can be called so.
///
/// # Errors
/// What keeps it from that.
pub fn check_assistant_name(name: &str) -> Result<(), AssistantNameError> {
    static BEGINNINGS: LazyLock<HashSet<String>> = LazyLock::new(|| beginnings(&doors()).collect());
    threadkeep_service::check_assistant_name(name, |name| BEGINNINGS.contains(name))
}

/// A route of a door that one of others has, or has in another shape: of `/a/{b}` and `/a/{c}` no path says which.
pub(crate) fn collision(doors: &[Door], door: &Door) -> Option<RouteInfo> {
    let taken: Vec<RouteInfo> = doors.iter().flat_map(Door::routes_and_aliases).collect();
    let collides = |route: &RouteInfo| {
        taken.iter().any(|other| {
            let is_same = other.path == route.path;
            if is_same { other.method == route.method } else { shape(&other.path) == shape(&route.path) }
        })
    };
    door.routes_and_aliases().into_iter().find(collides)
}

/// A path without the names of what varies.
fn shape(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// What the paths of doors begin with.
pub(crate) fn beginnings(doors: &[Door]) -> impl Iterator<Item = String> + use<'_> {
    let paths = doors.iter().flat_map(|door| &door.routes).flat_map(Route::paths).map(String::as_str);
    let aliases = doors.iter().flat_map(|door| &door.aliases).map(|alias| alias.path);
    paths.chain(aliases).filter_map(|path| path.trim_start_matches('/').split('/').next().map(str::to_owned))
}

/// What the routes of doors say of themselves.
pub(crate) fn described(doors: &[Door]) -> utoipa::openapi::OpenApi {
    let mut router = OpenApiRouter::<App>::with_openapi(Document::openapi());
    for route in doors.iter().flat_map(|door| &door.routes) {
        router = router.routes(route.actions.clone());
    }
    let mut document = router.into_openapi();
    for alias in doors.iter().flat_map(|door| &door.aliases) {
        let Some(mut item) = document.paths.paths.get(alias.canonical).cloned() else { continue };
        let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            operation.deprecated = Some(Deprecated::True);
        }
        document.paths.paths.insert(alias.path.to_owned(), item);
    }
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

    #[test]
    fn no_path_begins_with_the_name_of_an_assistant() {
        assert_eq!(check_assistant_name("keeper"), Ok(()));
        for name in ["v1", "docs", "health", "ready", "metrics", "chat", "clear", "conversations", "preferences"] {
            assert!(matches!(check_assistant_name(name), Err(AssistantNameError::Reserved { .. })), "{name}");
        }
    }

    /// Of two shapes with one name the document would show one, and the other's route would seem to answer with it.
    #[test]
    fn no_two_shapes_share_a_name() {
        let mut shapes = HashMap::new();
        let doors = doors();
        for (name, shape) in doors.iter().flat_map(|door| &door.routes).flat_map(|route| &route.actions.0) {
            let shape = serde_json::to_value(shape).unwrap();
            let before = shapes.entry(name.clone()).or_insert_with(|| shape.clone());
            assert_eq!(*before, shape, "{name}");
        }
        assert!(shapes.len() > 80, "{}", shapes.len());
    }
}
