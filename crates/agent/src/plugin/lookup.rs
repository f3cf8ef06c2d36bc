use threadkeep_core::Map;

/// A lookup endpoint, and the tool that answers it without a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The endpoint, without a slash: `route`, `arrivals` or `stations`.
    pub endpoint: &'static str,
    /// The parameter that the request must have; `None` if the tool answers all requests.
    pub if_given: Option<&'static str>,
    /// The name of the tool, which must be read-only.
    pub tool: &'static str,
    /// The endpoint's parameters, with the names of the tool's arguments. Other parameters are passed unchanged.
    pub arguments: &'static [(&'static str, &'static str)],
}

impl Lookup {
    /// Returns the first lookup of an endpoint that applies to the request's parameters.
    pub fn find<'a>(lookups: &'a [Self], endpoint: &str, is_given: impl Fn(&str) -> bool) -> Option<&'a Self> {
        lookups.iter().find(|lookup| lookup.endpoint == endpoint && lookup.if_given.is_none_or(&is_given))
    }

    /// Converts the endpoint's parameters to the tool's arguments. One passed under the argument's own name takes precedence.
    #[must_use]
    pub fn arguments(&self, mut given: Map) -> Map {
        for (parameter, argument) in self.arguments {
            if !given.contains_key(*argument)
                && let Some(value) = given.remove(*parameter)
            {
                given.insert((*argument).to_owned(), value);
            }
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOOKUPS: [Lookup; 2] = [
        Lookup { endpoint: "stations", if_given: Some("line"), tool: "list", arguments: &[("line", "line")] },
        Lookup { endpoint: "stations", if_given: None, tool: "get", arguments: &[("station", "name")] },
    ];

    #[test]
    fn find_returns_the_first_applicable_lookup() {
        let tool = |endpoint, given: &[&str]| {
            Some(Lookup::find(&LOOKUPS, endpoint, |parameter| given.contains(&parameter))?.tool)
        };
        assert_eq!(tool("stations", &["line", "station"]), Some("list"));
        assert_eq!(tool("stations", &[]), Some("get"));
        assert_eq!(tool("route", &["line"]), None);
    }

    #[test]
    fn parameters_become_arguments() {
        let arguments = |given: serde_json::Value| {
            let serde_json::Value::Object(given) = given else { panic!("not an object") };
            serde_json::Value::Object(LOOKUPS[1].arguments(given))
        };
        assert_eq!(arguments(json!({ "station": "14 St", "more": "x" })), json!({ "more": "x", "name": "14 St" }));
        let both = json!({ "station": "14 St", "name": "96 St" });
        assert_eq!(arguments(both.clone()), both);
        assert_eq!(arguments(json!({})), json!({}));
    }
}
