//! The cases that hold every route against other tenants and other users: what is another's answers as what is nobody's.
//!
//! Each door declares its own, beside its routes, and the tests over tenants and roles go through those of all doors.

use serde_json::Value;

/// How a route is asked for somebody's thing and for nobody's.
#[derive(Clone, Debug)]
pub struct TenantCase {
    /// The method, in capitals, and the path, as the route has them.
    pub route: (&'static str, &'static str),
    /// The request with somebody's names in it, and the same with names that nobody has. None where nothing of anyone's can be
    /// named.
    pub probes: Vec<(Probe, Probe)>,
}

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// The path, and the query.
    pub path: String,
    /// The body, as JSON.
    pub body: Option<Value>,
    /// Headers beside those of the caller.
    pub headers: Vec<(&'static str, String)>,
}

/// What the owner has whom the tests set up, as clients name it.
#[derive(Clone, Debug)]
pub struct Owned {
    /// A thread.
    pub thread: String,
    /// A message of it.
    pub message: String,
    /// The thread's key.
    pub key: String,
    /// Of lists, by their names (`threads`, `records`), where the second page begins.
    pub cursors: Vec<(&'static str, String)>,
    /// A response of the OpenAI wire without a conversation, and one in one.
    pub responses: Vec<String>,
    /// A chat completion that is stored.
    pub completion: String,
    /// A turn that waits for an approval.
    pub turn: String,
    /// The approval.
    pub approval: String,
    /// The owner.
    pub user: &'static str,
}

impl TenantCase {
    /// A route on which somebody's things can be named.
    #[must_use]
    pub fn new(method: &'static str, path: &'static str, probes: Vec<(Probe, Probe)>) -> Self {
        Self { route: (method, path), probes }
    }

    /// A route on which nothing of anyone's can be named.
    #[must_use]
    pub fn names_nothing(method: &'static str, path: &'static str) -> Self {
        Self::new(method, path, Vec::new())
    }
}

impl Probe {
    /// A request without a body.
    #[must_use]
    pub fn at(path: impl Into<String>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }

    /// A request with a body.
    #[must_use]
    pub fn with(path: impl Into<String>, body: Value) -> Self {
        Self { path: path.into(), body: Some(body), ..Self::default() }
    }
}

impl Owned {
    /// What nobody has.
    #[must_use]
    pub fn nobody() -> Self {
        let id = || "0190b4e2-0000-7000-8000-000000000000".to_owned();
        Self {
            thread: id(),
            message: id(),
            key: "nobodys".to_owned(),
            cursors: ["threads", "records"].map(|list| (list, "bm9ib2R5".to_owned())).to_vec(),
            responses: vec!["resp_0190b4e2000070008000000000000000".to_owned()],
            completion: "chatcmpl-0190b4e2000070008000000000000000".to_owned(),
            turn: id(),
            approval: id(),
            user: "nobody",
        }
    }

    /// Where the second page of a list begins.
    ///
    /// # Panics
    /// Where the owner has no cursor of that list.
    #[must_use]
    pub fn cursor(&self, list: &str) -> &str {
        let found = self.cursors.iter().find(|(name, _)| *name == list);
        found.map(|(_, cursor)| cursor.as_str()).expect("the owner has one of each")
    }
}
