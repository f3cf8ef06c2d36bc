//! Objects as manifests, with secret values hidden.

use serde_json::{Value, json};

use super::{CommandError, Result};
use crate::kinds::Kind;

/// The placeholder for a value that is never shown.
const HIDDEN: &str = "(hidden)";
/// The annotation that contains a copy of the whole object, including its values.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The maximum nesting depth that is searched.
const MAX_DEPTH: usize = 64;

/// Returns an object as YAML. Values of secrets and of environment variables are hidden; managed fields are left out.
pub(crate) fn yaml(kind: &Kind, object: &Value) -> Result<String> {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    if kind.plural == "secrets" {
        for name in ["data", "stringData"] {
            for value in object[name].as_object_mut().into_iter().flat_map(|members| members.values_mut()) {
                *value = json!(HIDDEN);
            }
        }
        if let Some(members) = object.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
    }
    hide_environment(&mut object, 0);
    serde_saphyr::to_string(&object)
        .map_err(|error| CommandError::Failed(format!("the object cannot be written as YAML: {error}")))
}

/// Hides the values of environment variables in all containers, at any depth.
fn hide_environment(value: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::Array(variables) if name == "env" => {
                        for variable in variables {
                            if variable["value"].is_string() {
                                variable["value"] = json!(HIDDEN);
                            }
                        }
                    }
                    member => hide_environment(member, depth + 1),
                }
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| hide_environment(entry, depth + 1)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_may_be_secret_are_hidden() {
        let kind = Kind::find("secrets").unwrap();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "data": { "password": "aHVudGVyMg==" },
            "metadata": { "name": "db", "annotations": { LAST_APPLIED: "aHVudGVyMg==", "team": "a" }, "managedFields": [1] },
        });
        let text = yaml(&kind, &secret).unwrap();
        assert!(text.contains("password: (hidden)") && text.contains("team: a"), "{text}");
        assert!(!text.contains("aHVud") && !text.contains("managedFields"), "{text}");

        let kind = Kind::find("deployments").unwrap();
        let env = json!([{ "name": "KEY", "value": "hunter2" }, { "name": "REF", "valueFrom": { "secretKeyRef": { "name": "db" } } }]);
        let deployment =
            json!({ "spec": { "template": { "spec": { "containers": [{ "name": "web", "env": env }] } } } });
        let text = yaml(&kind, &deployment).unwrap();
        assert!(!text.contains("hunter2") && text.contains("secretKeyRef"), "{text}");
    }

    #[test]
    fn a_config_map_is_shown_in_full() {
        let kind = Kind::find("configmaps").unwrap();
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "app" }, "data": { "mode": "blue", "a.conf": "x=1\ny=2\n" } });
        let read: Value = serde_saphyr::from_str(&yaml(&kind, &object).unwrap()).unwrap();
        assert_eq!(read, object);
    }
}
