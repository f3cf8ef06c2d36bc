use threadkeep_core::Map;

/// One of the documents' endpoints, and the tool that answers it without a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The endpoint, without a slash: `route`, `arrivals` or `stations`.
    pub endpoint: &'static str,
    /// The parameter that has to be given; `None` where the tool answers whatever is given.
    pub if_given: Option<&'static str>,
    /// The tool by its name. Only a tool that changes nothing is called.
    pub tool: &'static str,
    /// The endpoint's parameters, each with the tool's argument that it stands for. Others reach the tool as they are.
    pub arguments: &'static [(&'static str, &'static str)],
}

impl Lookup {
    /// The first of the lookups of an endpoint that applies to what is given.
    pub fn find<'a>(lookups: &'a [Self], endpoint: &str, is_given: impl Fn(&str) -> bool) -> Option<&'a Self> {
        lookups.iter().find(|lookup| lookup.endpoint == endpoint && lookup.if_given.is_none_or(&is_given))
    }

    /// The tool's arguments, from the endpoint's parameters. One that is given under the tool's own name stays.
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
    fn the_first_that_applies_answers() {
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
            let serde_json::Value::Object(given) = given else { panic!("an object is given") };
            serde_json::Value::Object(LOOKUPS[1].arguments(given))
        };
        assert_eq!(arguments(json!({ "station": "14 St", "more": "x" })), json!({ "more": "x", "name": "14 St" }));
        let both = json!({ "station": "14 St", "name": "96 St" });
        assert_eq!(arguments(both.clone()), both);
        assert_eq!(arguments(json!({})), json!({}));
    }
}
