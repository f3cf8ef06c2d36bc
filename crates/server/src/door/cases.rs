//! Test cases for isolation between tenants and between users: a request for another tenant's resource must get the same
//! response as a request for a resource that does not exist.
//!
//! Each door declares cases for its routes. The tests for tenants and roles send the requests of all doors.

use serde_json::Value;

/// Requests to one route: some for resources of an owner, and some for resources that do not exist.
#[derive(Clone, Debug)]
pub struct TenantCase {
    /// The method in upper case and the path of the route.
    pub route: (&'static str, &'static str),
    /// Pairs of requests: a request with the ids of an owner's resources, and the same request with ids that do not exist. Empty if
    /// requests to the route cannot identify anyone's resources.
    pub probes: Vec<(Probe, Probe)>,
}

/// A request of a test case.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// The path with the query.
    pub path: String,
    /// The JSON body.
    pub body: Option<Value>,
    /// Headers that are sent in addition to the headers for authentication.
    pub headers: Vec<(&'static str, String)>,
}

/// The ids of the resources that the tests create for one owner, in the form that clients use.
#[derive(Clone, Debug)]
pub struct OwnedIds {
    /// A thread.
    pub thread: String,
    /// A message of the thread.
    pub message: String,
    /// The key of the thread.
    pub key: String,
    /// Names of lists (`threads`, `records`), with a cursor to the second page of each list.
    pub cursors: Vec<(&'static str, String)>,
    /// Two OpenAI responses: one outside of a conversation and one in a conversation.
    pub responses: Vec<String>,
    /// A stored chat completion.
    pub completion: String,
    /// An uploaded file.
    pub file: String,
    /// A turn that waits for approval.
    pub turn: String,
    /// The pending approval of the turn.
    pub approval: String,
    /// The name of the owner.
    pub user: &'static str,
}

impl TenantCase {
    /// Creates the case of a route whose requests identify resources.
    #[must_use]
    pub fn new(method: &'static str, path: &'static str, probes: Vec<(Probe, Probe)>) -> Self {
        Self { route: (method, path), probes }
    }

    /// Creates the case of a route whose requests cannot identify anyone's resources.
    #[must_use]
    pub fn without_ids(method: &'static str, path: &'static str) -> Self {
        Self::new(method, path, Vec::new())
    }
}

impl Probe {
    /// Creates a request without a body.
    #[must_use]
    pub fn at(path: impl Into<String>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }

    /// Creates a request with a body.
    #[must_use]
    pub fn with(path: impl Into<String>, body: Value) -> Self {
        Self { path: path.into(), body: Some(body), ..Self::default() }
    }
}

impl OwnedIds {
    /// Returns ids that do not exist.
    #[must_use]
    pub fn nonexistent() -> Self {
        let id = || "0190b4e2-0000-7000-8000-000000000000".to_owned();
        Self {
            thread: id(),
            message: id(),
            key: "unknown".to_owned(),
            cursors: ["threads", "records"].map(|list| (list, "bm9ib2R5".to_owned())).to_vec(),
            responses: vec!["resp_0190b4e2000070008000000000000000".to_owned()],
            completion: "chatcmpl-0190b4e2000070008000000000000000".to_owned(),
            file: "file-0190b4e2000070008000000000000000".to_owned(),
            turn: id(),
            approval: id(),
            user: "unknown",
        }
    }

    /// Returns the cursor to the second page of a list.
    ///
    /// # Panics
    /// If there is no cursor for the list.
    #[must_use]
    pub fn cursor(&self, list: &str) -> &str {
        let found = self.cursors.iter().find(|(name, _)| *name == list);
        found.map(|(_, cursor)| cursor.as_str()).expect("test data has a cursor for each list")
    }
}
