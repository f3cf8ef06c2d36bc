//! Fuzz targets: every parser of untrusted input, as a function of bytes.
//!
//! A target fails on a panic, a stack overflow, or excessive time or memory. `cargo xtask fuzz` runs the targets under
//! libFuzzer. `tests/replay.rs` runs each target on its folder in `corpus/`, which contains small seeds and inputs that
//! failed in the past. `README.md` has a table of parsers, limits and targets.
#![warn(missing_docs)]

mod documents;
mod imports;
mod models;
mod server;
mod stored;
mod transit;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target and of its folder in `corpus/`.
    pub name: &'static str,
    /// Runs the target with an input.
    pub run: fn(&[u8]),
}

/// All targets, sorted by name.
pub const TARGETS: &[Target] = &[
    target("anthropic-answer", models::anthropic_answer),
    target("backup", stored::backup),
    target("codec", stored::codec),
    target("gtfs-tables", transit::gtfs_tables),
    target("gtfs-zip", transit::gtfs_zip),
    target("html", documents::html),
    target("import-any", imports::any),
    target("import-chatgpt", imports::chatgpt),
    target("import-claude", imports::claude),
    target("import-locomo", imports::locomo),
    target("import-openai-chat", imports::openai_chat),
    target("import-programs", imports::programs),
    target("import-sgd", imports::sgd),
    target("import-sharegpt", imports::share_gpt),
    target("import-threadkeep", imports::threadkeep),
    target("key-set", server::key_set),
    target("manifest", documents::manifest),
    target("markdown", documents::markdown),
    target("openai-answer", models::openai_answer),
    target("realtime", transit::realtime),
    target("request", server::request),
    target("search-query", stored::search_query),
    target("socket-message", server::socket_message),
    target("text", documents::text),
    target("timetable-cache", transit::timetable_cache),
    target("token", server::token),
    target("words", stored::words),
    target("written-calls", models::written_calls),
];

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// Finds a target by name.
#[must_use]
pub fn find(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.name == name)
}
