//! Patches of objects: JSON merge patches, and strategic merge patches as far as clients of this crate use them.

use serde_json::{Map, Value};

/// The kinds of patches, by their media types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// RFC 7386, and server-side apply without ownership of fields.
    Merge,
    /// Lists of named entries are merged by name.
    Strategic,
    /// RFC 6902, with the operations `add`, `replace` and `remove`.
    Json,
}

impl PatchKind {
    pub(crate) fn of(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" | "application/apply-patch+yaml" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/json-patch+json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Applies a patch.
///
/// # Errors
/// Returns the reason if a JSON patch cannot be applied to the object.
pub(crate) fn apply(kind: PatchKind, object: &Value, patch: &Value) -> Result<Value, String> {
    let mut patched = object.clone();
    match kind {
        PatchKind::Merge => merge(&mut patched, patch, false),
        PatchKind::Strategic => merge(&mut patched, patch, true),
        PatchKind::Json => {
            for operation in patch.as_array().ok_or("a JSON patch must be a list")? {
                change(&mut patched, operation)?;
            }
        }
    }
    Ok(patched)
}

fn merge(target: &mut Value, patch: &Value, is_strategic: bool) {
    let Value::Object(members) = patch else {
        if is_strategic && merge_lists(target, patch) {
            return;
        }
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(object) = target else { return };
    for (name, value) in members {
        if value.is_null() {
            object.remove(name);
        } else {
            merge(object.entry(name.clone()).or_insert(Value::Null), value, is_strategic);
        }
    }
}

/// Merges two lists by name if all entries have names. Returns whether the lists were merged.
fn merge_lists(target: &mut Value, patch: &Value) -> bool {
    let is_named = |list: &[Value]| list.iter().all(|entry| entry["name"].is_string());
    let (Value::Array(entries), Value::Array(patches)) = (target, patch) else { return false };
    if entries.is_empty() || !is_named(entries) || !is_named(patches) {
        return false;
    }
    for patch in patches {
        let position = entries.iter().position(|entry| entry["name"] == patch["name"]);
        if patch["$patch"] == "delete" {
            entries.retain(|entry| entry["name"] != patch["name"]);
        } else if let Some(position) = position {
            merge(&mut entries[position], patch, true);
        } else {
            entries.push(patch.clone());
        }
    }
    true
}

fn change(object: &mut Value, operation: &Value) -> Result<(), String> {
    let path = operation["path"].as_str().ok_or("an operation has no path")?;
    let (parent, last) = path.rsplit_once('/').ok_or("a path must start with a slash")?;
    let key = last.replace("~1", "/").replace("~0", "~");
    let target = object.pointer_mut(parent).ok_or_else(|| format!("there is no {parent}"))?;
    let (verb, value) = (operation["op"].as_str().unwrap_or_default(), operation["value"].clone());
    match (verb, target) {
        ("test", target) => {
            let found = target.get(&key).cloned().unwrap_or_default();
            if found == value { Ok(()) } else { Err(format!("{path} is not {value}")) }
        }
        ("add" | "replace", Value::Object(members)) => {
            members.insert(key, value);
            Ok(())
        }
        ("remove", Value::Object(members)) => {
            members.remove(&key).map(drop).ok_or_else(|| format!("there is no {path}"))
        }
        ("add", Value::Array(list)) if key == "-" => {
            list.push(value);
            Ok(())
        }
        ("replace", Value::Array(list)) => {
            let entry = key.parse::<usize>().ok().and_then(|at| list.get_mut(at));
            entry.map(|entry| *entry = value).ok_or_else(|| format!("there is no {path}"))
        }
        _ => Err(format!("the operation {verb} at {path} is not supported")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_strategic_patch_merges_containers_by_name() {
        let pod = json!({ "spec": { "containers": [{ "name": "web", "image": "nginx:1" }, { "name": "log", "image": "tail" }] } });
        let patch = json!({ "spec": { "containers": [{ "name": "web", "image": "nginx:2" }] } });
        let patched = apply(PatchKind::Strategic, &pod, &patch).unwrap();
        assert_eq!(
            patched["spec"]["containers"],
            json!([{ "name": "web", "image": "nginx:2" }, { "name": "log", "image": "tail" }])
        );
        let replaced = apply(PatchKind::Merge, &pod, &patch).unwrap();
        assert_eq!(replaced["spec"]["containers"], json!([{ "name": "web", "image": "nginx:2" }]));
        let removed = apply(PatchKind::Merge, &json!({ "a": 1, "b": 2 }), &json!({ "a": null })).unwrap();
        assert_eq!(removed, json!({ "b": 2 }));
    }

    #[test]
    fn a_json_patch_that_cannot_be_applied_is_rejected() {
        let object = json!({ "spec": { "replicas": 2 } });
        let patch = |path: &str| json!([{ "op": "replace", "path": path, "value": 3 }]);
        assert_eq!(apply(PatchKind::Json, &object, &patch("/spec/replicas")).unwrap()["spec"]["replicas"], 3);
        assert!(apply(PatchKind::Json, &object, &patch("/status/x/y")).is_err());
    }
}
