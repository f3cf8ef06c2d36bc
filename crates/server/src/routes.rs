//! Combines the routes of all doors into one router and one OpenAPI document.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, Method};
use threadkeep_service::AssistantNameError;
use tower_http::cors::{AllowHeaders, CorsLayer};
use utoipa::OpenApi;
use utoipa::openapi::Deprecated;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::door::{Door, Route, RouteInfo};
use crate::route_layer::RouteLayer;
use crate::{compat, error, live, mcp, middleware, openai, operations, page, rest, webhooks};

/// Returns the built-in doors, which every server has.
pub(crate) fn doors() -> Vec<Door> {
    vec![
        operations::door(),
        rest::door(),
        live::door(),
        webhooks::door(),
        openai::door(),
        mcp::door(),
        compat::door(),
        page::door(),
    ]
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Threadkeep",
        description = "Conversation memory for AI assistants: stores and searches threads, and assembles the context of the next turn.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(error::ErrorEnvelope<'_>, error::ErrorBody<'_>))
)]
struct Document;

/// Builds the router of all doors.
pub(crate) fn router(app: &App) -> Router {
    let mut router = Router::<App>::new();
    for door in app.doors() {
        for route in &door.routes {
            let (_, _, methods) = route.actions();
            let methods = methods.route_layer(RouteLayer::new(app, route.rule.clone(), door.error_format));
            let paths = route.paths();
            let aliases = door.aliases.iter().filter(|alias| paths.contains(alias.canonical));
            let aliases = aliases.map(|alias| alias.path);
            for path in paths.iter().copied().chain(aliases) {
                router = router.route(path, methods.clone());
            }
        }
    }
    let router = router
        .fallback(middleware::respond_unknown_route)
        .method_not_allowed_fallback(middleware::respond_wrong_method)
        .with_state(app.clone());
    match cors_layer(&app.options().browser_origins) {
        Some(cors) => router.layer(cors),
        None => router,
    }
}

/// Returns the layer that lets web pages of these origins call the server (CORS); `None` if there are no origins. Cookies are not
/// accepted from other origins.
fn cors_layer(origins: &[String]) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    if origins.is_empty() {
        return None;
    }
    let exposed = [
        "etag",
        "idempotency-replayed",
        "retry-after",
        "threadkeep-thread",
        "x-ratelimit-limit-requests",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
        "x-request-id",
    ];
    let methods = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods(methods)
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(exposed.map(HeaderName::from_static))
        .max_age(Duration::from_secs(600));
    Some(layer)
}

/// Checks whether a name is valid for an assistant.
///
/// # Errors
/// The name is malformed, or reserved because a path of a built-in door begins with it.
pub fn check_assistant_name(name: &str) -> Result<(), AssistantNameError> {
    threadkeep_service::check_assistant_name(name, |name| reserved_names().contains(name))
}

/// Returns the first segments of the paths of built-in doors. Assistants cannot have these names.
pub(crate) fn reserved_names() -> &'static HashSet<String> {
    static RESERVED: LazyLock<HashSet<String>> = LazyLock::new(|| first_segments(&doors()).collect());
    &RESERVED
}

/// Returns the first route of a door that collides with a route of other doors. Routes collide if they have the same path and
/// method, or if their paths differ only in the names of parameters, such as `/a/{b}` and `/a/{c}`.
pub(crate) fn find_collision(doors: &[Door], door: &Door) -> Option<RouteInfo> {
    let existing_routes: Vec<RouteInfo> = doors.iter().flat_map(Door::routes_and_aliases).collect();
    let collides = |route: &RouteInfo| {
        existing_routes.iter().any(|other| {
            let is_same_path = other.path == route.path;
            if is_same_path {
                other.method == route.method
            } else {
                without_parameter_names(&other.path) == without_parameter_names(&route.path)
            }
        })
    };
    door.routes_and_aliases().into_iter().find(collides)
}

/// Returns a path without the names of its parameters.
fn without_parameter_names(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns the first segment of each path of the doors, aliases included.
pub(crate) fn first_segments(doors: &[Door]) -> impl Iterator<Item = String> + use<'_> {
    let paths = doors.iter().flat_map(|door| &door.routes).flat_map(Route::paths);
    let aliases = doors.iter().flat_map(|door| &door.aliases).map(|alias| alias.path);
    paths.chain(aliases).filter_map(|path| path.trim_start_matches('/').split('/').next().map(str::to_owned))
}

/// Generates the OpenAPI document of the doors. Aliases are included as deprecated paths.
pub(crate) fn openapi_document(doors: &[Door]) -> utoipa::openapi::OpenApi {
    let mut router = OpenApiRouter::<App>::with_openapi(Document::openapi());
    for route in doors.iter().flat_map(|door| &door.routes) {
        router = router.routes(route.actions());
    }
    let mut document = router.into_openapi();
    for alias in doors.iter().flat_map(|door| &door.aliases) {
        let Some(mut item) = document.paths.paths.get(alias.canonical).cloned() else { continue };
        let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            operation.deprecated = Some(Deprecated::True);
            // The names of operations are unique in a document.
            operation.operation_id = operation.operation_id.take().map(|name| format!("{name}_at_former_path"));
        }
        document.paths.paths.insert(alias.path.to_owned(), item);
    }
    if let Some(components) = &mut document.components {
        let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        components.add_security_scheme("key", scheme);
        for (name, header) in doors.iter().flat_map(|door| &door.security_schemes) {
            components.add_security_scheme(*name, SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(*header))));
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn assistant_names_cannot_shadow_paths() {
        assert_eq!(check_assistant_name("keeper"), Ok(()));
        for name in ["v1", "mcp", "docs", "health", "ready", "metrics", "chat", "clear", "conversations", "preferences"]
        {
            assert!(matches!(check_assistant_name(name), Err(AssistantNameError::Reserved { .. })), "{name}");
        }
    }

    /// The document contains only one schema per name. If two schemas had the same name, one of their routes would be documented
    /// with the wrong schema.
    #[test]
    fn schema_names_are_unique() {
        let mut schemas = HashMap::new();
        let doors = doors();
        for (name, schema) in doors.iter().flat_map(|door| &door.routes).flat_map(|route| route.actions().0) {
            let schema = serde_json::to_value(schema).unwrap();
            let first = schemas.entry(name.clone()).or_insert_with(|| schema.clone());
            assert_eq!(*first, schema, "{name}");
        }
        assert!(schemas.len() > 80, "{}", schemas.len());
    }
}
