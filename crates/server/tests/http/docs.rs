//! docs/server.md names every route.

use threadkeep_server::Server;

const DOCS: &str = include_str!("../../../../docs/server.md");

/// Paths that the documentation describes together in one sentence: the former paths of records, and files of pages.
const TOGETHER: [&str; 4] = ["/documents/", "/docs/", "/assets/", "/offline/"];

#[test]
fn documentation_names_every_route() {
    // A table row lists the methods before the path: `GET`, `PUT /v1/threads`.
    let words: Vec<&str> =
        DOCS.split(|character: char| " `,;|()?\n".contains(character)).filter(|word| !word.is_empty()).collect();
    let mut missing = Vec::new();
    let is_together = |path: &str| TOGETHER.iter().any(|part| path.contains(part));
    for mut route in Server::routes().into_iter().filter(|route| !is_together(&route.path)) {
        // The endpoints of assistants are described by their paths under `/{assistant}`.
        if let Some(path) = route.path.strip_prefix("/{assistant}").filter(|path| !path.is_empty()) {
            route.path = path.to_owned();
        }
        let is_named = words.iter().enumerate().filter(|(_, word)| is_path(word, &route.path)).any(|(at, _)| {
            let methods = words[..at].iter().rev().take_while(|word| is_method(word));
            let mut methods = methods.peekable();
            methods.peek().is_none() || methods.any(|method| *method == route.method)
        });
        if !is_named {
            missing.push(format!("{} {}", route.method, route.path));
        }
    }
    assert!(missing.is_empty(), "docs/server.md does not contain {missing:#?}");
}

fn is_method(word: &str) -> bool {
    ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&word)
}

/// Whether a word of the documentation is the path of a route. The names of parameters may differ.
fn is_path(word: &str, path: &str) -> bool {
    let is_same = |word: &str, path: &str| word == path || (word.starts_with('{') && path.starts_with('{'));
    word.split('/').count() == path.split('/').count()
        && word.split('/').zip(path.split('/')).all(|(word, path)| is_same(word, path))
}
