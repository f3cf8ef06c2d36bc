//! The web page at the root of the server, and the page without a server at `/offline/`, which has its engine in the browser: static
//! files that are built into the program. They need no credentials, because they contain no user data; the page signs in, and then
//! calls the API like any other client.

use std::fmt;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use utoipa_axum::routes;

use crate::app::App;
use crate::compat::assistant::single_assistant;
use crate::compat::page::{escape_html, page};
use crate::door::{Door, OwnedIds, Rule, TenantCase};
use crate::error::{ApiError, Result};
use crate::input::PathParams;
use crate::output::with_policy;

const PLAIN_PAGE: &str = include_str!("page/plain.html");
/// The content security policy of the page: scripts and styles only from its own files, connections only to this server. The browser
/// also refuses to turn text into HTML or code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";
/// The content security policy of the plain page, which has no scripts.
const PLAIN_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
                            frame-ancestors 'none'";
/// The content security policy of the page without a server: as [`POLICY`], but it may compile its engine, and register its service
/// worker.
const OFFLINE_POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; \
                              img-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; \
                              form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                              trusted-types threadkeep-offline";
/// The folder of the files whose names contain a digest of their content.
const ASSETS: &str = "assets/";
/// The folders of the page without a server.
const OFFLINE: &str = "offline/";
const ENGINE: &str = "offline/engine/";

/// The files of a page: `index.html`, and the files in `assets/` that it loads; those of the page without a server in `offline/`.
#[derive(Clone, Copy)]
pub struct Page {
    files: &'static [(&'static str, &'static [u8])],
}

impl Page {
    /// Creates a page from its files, by name. Returns `None` if there is no `index.html`.
    #[must_use]
    pub fn new(files: &'static [(&'static str, &'static [u8])]) -> Option<Self> {
        let page = Self { files };
        page.find("index.html").map(|_| page)
    }

    fn find(&self, name: &str) -> Option<&'static [u8]> {
        self.files.iter().find(|(file, _)| *file == name).map(|(_, bytes)| *bytes)
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.files.iter().map(|(name, _)| name)).finish()
    }
}

/// Returns the door with the page.
pub(crate) fn door() -> Door {
    Door::new("page")
        .route(Rule::open(), || routes!(start))
        .route(Rule::open(), || routes!(asset))
        .route(Rule::open(), || routes!(offline))
        .route(Rule::open(), || routes!(offline_file))
        .route(Rule::open(), || routes!(engine_file))
        .cases(cases)
}

fn cases(_: &OwnedIds) -> Vec<TenantCase> {
    ["/", "/assets/{file}", "/offline/", "/offline/{file}", "/offline/engine/{file}"]
        .map(|path| TenantCase::without_ids("GET", path))
        .to_vec()
}

/// Serves the page
///
/// If the program was built without the page, this is the chat page of the server's assistant if there is only one, and otherwise
/// a plain page with links.
#[utoipa::path(get, path = "/", operation_id = "get_page", tag = "operations", responses((status = 200, description = "The page.")))]
pub(crate) async fn start(State(app): State<App>) -> Response {
    if let Some(index) = app.options().page.and_then(|page| page.find("index.html")) {
        return document(index, POLICY);
    }
    match single_assistant(&app) {
        Some(agent) => page(&agent),
        None => with_policy(Html(plain_page(&app)), PLAIN_POLICY),
    }
}

/// Serves a file of the page
#[utoipa::path(
    get,
    path = "/assets/{file}",
    operation_id = "get_page_file",
    tag = "operations",
    params(("file" = String, Path)),
    responses((status = 200, description = "The file."), (status = 404, description = "The page has no such file."))
)]
pub(crate) async fn asset(State(app): State<App>, path_params: PathParams) -> Result {
    // The name changes with the content.
    file(&app, ASSETS, &path_params, POLICY, "public, max-age=31536000, immutable")
}

/// Serves the page without a server
///
/// It is the same page, but its engine is in the browser, and so are its conversations. A service worker serves it when the server
/// cannot be reached. Only a program that was built with `cargo xtask web --offline` contains it.
#[utoipa::path(
    get,
    path = "/offline/",
    operation_id = "get_offline_page",
    tag = "operations",
    responses((status = 200, description = "The page."), (status = 404, description = "The program does not contain it."))
)]
pub(crate) async fn offline(State(app): State<App>) -> Result {
    let found = app.options().page.and_then(|page| page.find("offline/index.html"));
    let index = found.ok_or_else(|| {
        let message =
            "this program was built without the offline page; `cargo xtask web --offline`, then `cargo build` adds it";
        ApiError::new(StatusCode::NOT_FOUND, "not_found", message)
    })?;
    Ok(document(index, OFFLINE_POLICY))
}

/// Serves a file of the page without a server, such as its service worker
#[utoipa::path(
    get,
    path = "/offline/{file}",
    operation_id = "get_offline_page_file",
    tag = "operations",
    params(("file" = String, Path)),
    responses((status = 200, description = "The file."), (status = 404, description = "The page has no such file."))
)]
pub(crate) async fn offline_file(State(app): State<App>, path_params: PathParams) -> Result {
    file(&app, OFFLINE, &path_params, OFFLINE_POLICY, "no-cache")
}

/// Serves a file of the engine of the page without a server
#[utoipa::path(
    get,
    path = "/offline/engine/{file}",
    operation_id = "get_offline_engine_file",
    tag = "operations",
    params(("file" = String, Path)),
    responses((status = 200, description = "The file."), (status = 404, description = "The engine has no such file."))
)]
pub(crate) async fn engine_file(State(app): State<App>, path_params: PathParams) -> Result {
    file(&app, ENGINE, &path_params, OFFLINE_POLICY, "no-cache")
}

fn document(html: &'static [u8], policy: &'static str) -> Response {
    let mut response = with_policy(Html(html), policy);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    response
}

fn file(app: &App, folder: &str, path_params: &PathParams, policy: &'static str, caching: &'static str) -> Result {
    let name = format!("{folder}{}", path_params.get("file"));
    let found = app.options().page.and_then(|page| page.find(&name));
    let bytes = found.ok_or_else(|| ApiError::not_found("file"))?;
    let headers = [(header::CONTENT_TYPE, content_type(&name)), (header::CACHE_CONTROL, caching)];
    Ok(with_policy((headers, bytes).into_response(), policy))
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "wasm" => "application/wasm",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

/// Returns a page with links to the chat pages of the assistants and to the API reference.
fn plain_page(app: &App) -> String {
    let link = |agent: &threadkeep::Agent| {
        let definition = agent.assistant().definition();
        let (name, description) = (escape_html(&definition.name), escape_html(&definition.description));
        format!("<li><a href=\"{name}/\">{name}</a> {description}</li>")
    };
    let links: String = app.assistants().all().iter().map(link).collect();
    PLAIN_PAGE.replace("{assistants}", &links)
}
