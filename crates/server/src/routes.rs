//! The routes of all doors, as one router and one document.

use std::collections::HashSet;
use std::sync::LazyLock;

use axum::Router;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::door::{Door, Route};
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
            router = router.routes((schemas, paths, methods.route_layer(Gate::new(app, rule, door.wire))));
        }
    }
    let (router, _) = router.split_for_parts();
    router.fallback(edge::no_route).method_not_allowed_fallback(edge::no_method).with_state(app.clone())
}

/// Whether a path of the doors that every server has begins with a name.
pub(crate) fn begins_route(name: &str) -> bool {
    static BEGINNINGS: LazyLock<HashSet<String>> = LazyLock::new(|| beginnings(&doors()).collect());
    BEGINNINGS.contains(name)
}

/// What the paths of doors begin with.
fn beginnings(doors: &[Door]) -> impl Iterator<Item = String> {
    let paths = doors.iter().flat_map(|door| &door.routes).flat_map(Route::paths);
    paths.filter_map(|path| path.trim_start_matches('/').split('/').next().map(str::to_owned))
}

/// What the routes of doors say of themselves.
pub(crate) fn described(doors: &[Door]) -> utoipa::openapi::OpenApi {
    let mut router = OpenApiRouter::<App>::with_openapi(Document::openapi());
    for route in doors.iter().flat_map(|door| &door.routes) {
        router = router.routes(route.actions.clone());
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
        let doors = doors();
        for (name, shape) in doors.iter().flat_map(|door| &door.routes).flat_map(|route| &route.actions.0) {
            let shape = serde_json::to_value(shape).unwrap();
            let before = shapes.entry(name.clone()).or_insert_with(|| shape.clone());
            assert_eq!(*before, shape, "{name}");
        }
        assert!(shapes.len() > 80, "{}", shapes.len());
    }
}
