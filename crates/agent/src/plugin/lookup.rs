use threadkeep_core::Map;

/// An endpoint that answers requests with a tool, without a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The endpoint, without a slash: `route`, `arrivals`, `stations` or `lines`.
    pub endpoint: &'static str,
    /// The parameter that a request must have for this tool to answer it; `None` if the tool answers all requests.
    pub required_parameter: Option<&'static str>,
    /// The name of the tool, which must be read-only.
    pub tool: &'static str,
    /// Pairs of a parameter of the endpoint and the tool's argument to which it is passed. Other parameters are passed under their
    /// own names.
    pub arguments: &'static [(&'static str, &'static str)],
}

impl Lookup {
    /// Returns the first lookup of an endpoint whose required parameter the request has.
    pub fn find<'a>(lookups: &'a [Self], endpoint: &str, has_parameter: impl Fn(&str) -> bool) -> Option<&'a Self> {
        lookups
            .iter()
            .find(|lookup| lookup.endpoint == endpoint && lookup.required_parameter.is_none_or(&has_parameter))
    }

    /// Converts the endpoint's parameters to the tool's arguments. If a request contains both a parameter and the name of its
    /// argument, the value under the argument's name is used.
    #[must_use]
    pub fn arguments(&self, mut parameters: Map) -> Map {
        for (parameter, argument) in self.arguments {
            if !parameters.contains_key(*argument)
                && let Some(value) = parameters.remove(*parameter)
            {
                parameters.insert((*argument).to_owned(), value);
            }
        }
        parameters
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOOKUPS: [Lookup; 2] = [
        Lookup { endpoint: "stations", required_parameter: Some("line"), tool: "list", arguments: &[("line", "line")] },
        Lookup { endpoint: "stations", required_parameter: None, tool: "get", arguments: &[("station", "name")] },
    ];

    #[test]
    fn find_returns_the_first_applicable_lookup() {
        let tool = |endpoint, parameters: &[&str]| {
            Some(Lookup::find(&LOOKUPS, endpoint, |parameter| parameters.contains(&parameter))?.tool)
        };
        assert_eq!(tool("stations", &["line", "station"]), Some("list"));
        assert_eq!(tool("stations", &[]), Some("get"));
        assert_eq!(tool("route", &["line"]), None);
    }

    #[test]
    fn parameters_become_arguments() {
        let arguments = |parameters: serde_json::Value| {
            let serde_json::Value::Object(parameters) = parameters else { panic!("not an object") };
            serde_json::Value::Object(LOOKUPS[1].arguments(parameters))
        };
        assert_eq!(arguments(json!({ "station": "14 St", "more": "x" })), json!({ "more": "x", "name": "14 St" }));
        let both = json!({ "station": "14 St", "name": "96 St" });
        assert_eq!(arguments(both.clone()), both);
        assert_eq!(arguments(json!({})), json!({}));
    }
}
