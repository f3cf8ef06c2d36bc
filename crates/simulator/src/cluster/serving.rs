//! The request handlers of the API server.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};

use super::objects::{Change, Key, Objects, matches_fields, matches_selector};
use super::patch::{PatchKind, apply};
use super::replies::{Refusal, json_response, text_response};
use super::resources::Resource;
use super::world::log_key;
use super::{Denial, Request, Shared, table};
use crate::lock;

/// A parsed request.
struct Call<'a> {
    method: &'a Method,
    query: BTreeMap<String, String>,
    content_type: String,
    accept: String,
    body: &'a [u8],
}

impl Call<'_> {
    fn is_dry_run(&self) -> bool {
        self.query.get("dryRun").is_some_and(|value| value == "All")
    }

    /// Returns objects as a table, if the client prefers one.
    fn table(&self, resource: &Resource, objects: &[&Value], version: &str) -> Option<Value> {
        let include = self.query.get("includeObject").map_or("Metadata", String::as_str);
        table::is_wanted(&self.accept).then(|| table::table(resource, objects, version, include))
    }

    fn json(&self) -> Result<Value, Refusal> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        if self.content_type.contains("protobuf") {
            return Err(Refusal::unknown_format());
        }
        serde_json::from_slice(self.body)
            .or_else(|_| {
                let text = String::from_utf8_lossy(self.body);
                serde_saphyr::from_str(&text).map_err(|_| ())
            })
            .map_err(|()| Refusal::bad("the body is neither JSON nor YAML"))
    }

    /// The verb of the request, as RBAC names it.
    fn verb(&self, has_name: bool) -> &'static str {
        match (self.method.as_str(), has_name) {
            ("GET", true) => "get",
            ("GET", false) if self.query.contains_key("watch") => "watch",
            ("GET", false) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", _) => "delete",
            _ => "unknown",
        }
    }
}

/// The object or list that a path names.
struct Target {
    resource: Resource,
    namespace: String,
    name: Option<String>,
    sub: Option<String>,
}

impl Target {
    fn key(&self, name: &str) -> Key {
        Key::new(&self.resource.group, &self.resource.plural, &self.namespace, name)
    }
}

/// Answers a request.
pub(crate) fn answer(
    shared: &Shared,
    method: &Method,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Response {
    let query: BTreeMap<String, String> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let call = Call { method, query, content_type: header("content-type"), accept: header("accept"), body };
    let mut objects = lock(&shared.objects);
    let answered = discover(&objects, path).map_or_else(|| handle(shared, &mut objects, &call, path), Ok);
    shared.publish(&mut objects);
    drop(objects);
    answered.unwrap_or_else(Refusal::into_response)
}

/// Answers discovery requests; `None` for others.
fn discover(objects: &Objects, path: &str) -> Option<Response> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let document = match parts[..] {
        ["version"] => json!({ "major": "1", "minor": "33", "gitVersion": "v1.33.0" }),
        ["api"] => json!({ "kind": "APIVersions", "versions": ["v1"] }),
        ["apis"] => objects.resources.groups(),
        ["healthz" | "livez" | "readyz"] => return Some(text_response("ok".to_owned())),
        ["api", version] => objects.resources.list("", version)?,
        ["apis", group, version] => objects.resources.list(group, version)?,
        _ => return None,
    };
    Some(json_response(StatusCode::OK, &document))
}

fn target_of(objects: &Objects, path: &str) -> Result<Target, Refusal> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let unknown =
        || Refusal::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource");
    let (group, version, rest) = match &parts[..] {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Err(unknown()),
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, plural, rest @ ..] if !matches!(*plural, "status" | "finalize") => {
            (*namespace, [&[*plural], rest].concat())
        }
        rest => ("", rest.to_vec()),
    };
    let resource = rest.first().and_then(|plural| objects.resources.at(group, version, plural)).ok_or_else(unknown)?;
    let part_at = |at: usize| rest.get(at).map(|part| (*part).to_owned());
    if rest.len() > 3 {
        return Err(unknown());
    }
    Ok(Target { resource: resource.clone(), namespace: namespace.to_owned(), name: part_at(1), sub: part_at(2) })
}

fn handle(shared: &Shared, objects: &mut Objects, call: &Call<'_>, path: &str) -> Result<Response, Refusal> {
    let target = target_of(objects, path)?;
    let verb = call.verb(target.name.is_some());
    let is_dry_run = call.is_dry_run();
    lock(&shared.requests).push(Request {
        verb: verb.to_owned(),
        resource: target.resource.plural.clone(),
        subresource: target.sub.clone(),
        namespace: target.namespace.clone(),
        name: target.name.clone(),
        is_dry_run,
    });
    if let Some(message) = &*lock(&shared.outage) {
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message.clone()));
    }
    check_denials(&lock(&shared.denials), &target, verb)?;
    match (verb, target.name.clone(), target.sub.as_deref()) {
        ("list", None, None) => Ok(list(objects, call, &target)),
        ("watch", None, None) => watch(shared, objects, call, &target),
        ("create", None, None) => create(objects, call, &target),
        ("get", Some(name), None | Some("status")) => {
            let object =
                objects.by_key.get(&target.key(&name)).ok_or_else(|| Refusal::not_found(&target.resource, &name))?;
            let table = call.table(&target.resource, &[object], &objects.version());
            Ok(json_response(StatusCode::OK, table.as_ref().unwrap_or(object)))
        }
        ("get", Some(name), Some("log")) => log(objects, call, &target, &name),
        ("get" | "update" | "patch", Some(name), Some("scale")) => scale(objects, call, &target, &name),
        ("get" | "create", Some(name), Some("exec")) => {
            let has_pod = objects.by_key.contains_key(&target.key(&name));
            // The caller of this function upgrades the connection.
            if has_pod { Ok(text_response(String::new())) } else { Err(Refusal::not_found(&target.resource, &name)) }
        }
        ("create", Some(name), Some("eviction")) => delete(objects, call, &target, &name),
        ("update" | "patch", Some(name), None) => change(objects, call, &target, &name),
        ("delete", Some(name), None) => delete(objects, call, &target, &name),
        _ => Err(Refusal::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )),
    }
}

fn check_denials(denials: &[Denial], target: &Target, verb: &str) -> Result<(), Refusal> {
    let is_denied = |denial: &&Denial| {
        (denial.verb == "*" || denial.verb == verb)
            && (denial.resource == "*" || denial.resource == target.resource.plural)
            && (denial.namespace == "*" || denial.namespace == target.namespace)
    };
    let Some(_) = denials.iter().find(is_denied) else { return Ok(()) };
    let place = match &*target.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace \"{namespace}\""),
    };
    let (resource, name) =
        (&target.resource, target.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default());
    let message = format!(
        "{}{name} is forbidden: User \"bot\" cannot {verb} resource \"{}\" in API group \"{}\" {place}",
        resource.qualified(),
        resource.plural,
        resource.group
    );
    Err(Refusal::new(StatusCode::FORBIDDEN, "Forbidden", message))
}

fn selected<'a>(objects: &'a Objects, call: &Call<'_>, target: &Target) -> Vec<&'a Value> {
    let labels = call.query.get("labelSelector").map_or("", String::as_str);
    let fields = call.query.get("fieldSelector").map_or("", String::as_str);
    let all = objects.list(&target.resource.group, &target.resource.plural, &target.namespace).into_iter();
    all.map(|(_, object)| object)
        .filter(|object| matches_selector(object, labels) && matches_fields(object, fields))
        .collect()
}

fn list(objects: &Objects, call: &Call<'_>, target: &Target) -> Response {
    let found = selected(objects, call, target);
    if let Some(table) = call.table(&target.resource, &found, &objects.version()) {
        return json_response(StatusCode::OK, &table);
    }
    let bare = |object: &Value| {
        let mut object = object.clone();
        if let Some(members) = object.as_object_mut() {
            members.remove("kind");
            members.remove("apiVersion");
        }
        object
    };
    let items: Vec<Value> = found.into_iter().map(bare).collect();
    let document = json!({
        "kind": format!("{}List", target.resource.kind), "apiVersion": target.resource.api_version(),
        "metadata": { "resourceVersion": objects.version() }, "items": items,
    });
    json_response(StatusCode::OK, &document)
}

/// Streams changes as one JSON object per line: those after a version, or all existing objects followed by the changes.
fn watch(shared: &Shared, objects: &Objects, call: &Call<'_>, target: &Target) -> Result<Response, Refusal> {
    let (resource, as_table) = (target.resource.clone(), table::is_wanted(&call.accept));
    let line = move |kind: &str, object: &Value| {
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let table = as_table.then(|| table::table(&resource, &[object], version, "Metadata"));
        Bytes::from(format!("{}\n", json!({ "type": kind, "object": table.as_ref().unwrap_or(object) })))
    };
    let is_watched = watched(call, target);
    let first: Vec<Bytes> = match call.query.get("resourceVersion").map_or("", String::as_str) {
        "" | "0" => selected(objects, call, target).into_iter().map(|object| line("ADDED", object)).collect(),
        version => {
            let version = version.parse().map_err(|_| Refusal::bad(format!("invalid resource version: {version}")))?;
            let missed = objects.changes_after(version).ok_or_else(|| {
                Refusal::new(StatusCode::GONE, "Expired", format!("too old resource version: {version}"))
            })?;
            missed
                .into_iter()
                .filter(|change| is_watched(change))
                .map(|change| line(change.kind, &change.object))
                .collect()
        }
    };
    let mut changes = shared.changes.subscribe();
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(64);
    tokio::spawn(async move {
        for bytes in first {
            if sender.send(bytes).await.is_err() {
                return;
            }
        }
        while let Ok(change) = changes.recv().await {
            if is_watched(&change) && sender.send(line(change.kind, &change.object)).await.is_err() {
                return;
            }
        }
    });
    let lines = futures::stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|bytes| (Ok::<_, std::convert::Infallible>(bytes), receiver))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert("content-type", axum::http::HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Returns a filter for the changes that a watch covers.
fn watched(call: &Call<'_>, target: &Target) -> impl Fn(&Change) -> bool + Send + 'static {
    let selector = |name: &str| call.query.get(name).cloned().unwrap_or_default();
    let (fields, labels) = (selector("fieldSelector"), selector("labelSelector"));
    let (group, plural, namespace) =
        (target.resource.group.clone(), target.resource.plural.clone(), target.namespace.clone());
    move |change: &Change| {
        let key = &change.key;
        (&key.group, &key.plural) == (&group, &plural)
            && (namespace.is_empty() || namespace == key.namespace)
            && matches_fields(&change.object, &fields)
            && matches_selector(&change.object, &labels)
    }
}

fn create(objects: &mut Objects, call: &Call<'_>, target: &Target) -> Result<Response, Refusal> {
    let object = call.json()?;
    check_shape(&target.resource, &object)?;
    let key = objects.key_of(&target.resource, &object, &target.namespace);
    if key.name.is_empty() {
        return Err(Refusal::invalid(&target.resource, "", "metadata.name", "Required value"));
    }
    let namespace = Key::new("", "namespaces", "", &key.namespace);
    if target.resource.is_namespaced && !objects.by_key.contains_key(&namespace) {
        let message = format!("namespaces \"{}\" not found", key.namespace);
        return Err(Refusal::new(StatusCode::NOT_FOUND, "NotFound", message));
    }
    if objects.by_key.contains_key(&key) {
        let message = format!("{} \"{}\" already exists", target.resource.qualified(), key.name);
        return Err(Refusal::new(StatusCode::CONFLICT, "AlreadyExists", message));
    }
    if call.is_dry_run() {
        return Ok(json_response(StatusCode::CREATED, &object));
    }
    objects.put(key.clone(), object);
    objects.reconcile(&key);
    Ok(json_response(StatusCode::CREATED, &objects.by_key[&key]))
}

/// Checks the parts of an object that the controllers depend on.
fn check_shape(resource: &Resource, object: &Value) -> Result<(), Refusal> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let invalid = |field: &str, problem: &str| Refusal::invalid(resource, name, field, problem);
    if object["kind"].as_str().is_some_and(|kind| kind != resource.kind) {
        return Err(Refusal::bad(format!("the object's kind is not {}", resource.kind)));
    }
    if let Some(replicas) = object["spec"].get("replicas")
        && resource.group == "apps"
        && replicas.as_u64().is_none()
    {
        let problem = format!("Invalid value: {replicas}: must be greater than or equal to 0");
        return Err(invalid("spec.replicas", &problem));
    }
    for container in object["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten() {
        if container["image"].as_str().is_none_or(|image| image.is_empty() || image.contains(' ')) {
            return Err(invalid("spec.template.spec.containers.image", "Invalid value"));
        }
    }
    Ok(())
}

fn change(objects: &mut Objects, call: &Call<'_>, target: &Target, name: &str) -> Result<Response, Refusal> {
    let key = target.key(name);
    let is_apply = call.content_type.starts_with("application/apply-patch");
    let old = match objects.by_key.get(&key) {
        Some(old) => old.clone(),
        None if is_apply => json!({ "metadata": { "name": name } }),
        None => return Err(Refusal::not_found(&target.resource, name)),
    };
    let body = call.json()?;
    let mut new = if call.method == Method::PUT {
        body
    } else {
        let kind = PatchKind::of(&call.content_type).ok_or_else(Refusal::unknown_format)?;
        apply(kind, &old, &body).map_err(Refusal::bad)?
    };
    check_shape(&target.resource, &new)?;
    check_conflict(&target.resource, &old, &new["metadata"], name)?;
    for field in ["uid", "creationTimestamp"] {
        new["metadata"][field] = old["metadata"][field].clone();
    }
    if new["spec"] != old["spec"] {
        new["metadata"]["generation"] = json!(old["metadata"]["generation"].as_u64().unwrap_or(1) + 1);
    }
    if call.is_dry_run() {
        return Ok(json_response(StatusCode::OK, &new));
    }
    if new != old {
        objects.put(key.clone(), new);
        objects.reconcile(&key);
    }
    Ok(json_response(StatusCode::OK, &objects.by_key[&key]))
}

/// Returns a conflict if the object changed since the client read it.
fn check_conflict(resource: &Resource, old: &Value, given: &Value, name: &str) -> Result<(), Refusal> {
    for field in ["uid", "resourceVersion"] {
        let expected = given[field].as_str().unwrap_or_default();
        let actual = old["metadata"][field].as_str().unwrap_or_default();
        if !expected.is_empty() && expected != actual {
            let message = format!(
                "Operation cannot be fulfilled on {} \"{name}\": the object has been modified; please apply your changes to the latest version and try again",
                resource.qualified()
            );
            return Err(Refusal::new(StatusCode::CONFLICT, "Conflict", message));
        }
    }
    Ok(())
}

fn delete(objects: &mut Objects, call: &Call<'_>, target: &Target, name: &str) -> Result<Response, Refusal> {
    let key = target.key(name);
    let object = objects.by_key.get(&key).cloned().ok_or_else(|| Refusal::not_found(&target.resource, name))?;
    let body = call.json()?;
    let options = if body["kind"] == "Eviction" { &body["deleteOptions"] } else { &body };
    check_conflict(&target.resource, &object, &options["preconditions"], name)?;
    let in_body = options["dryRun"].as_array().is_some_and(|values| values.iter().any(|value| value == "All"));
    if !call.is_dry_run() && !in_body {
        objects.remove(&key);
        objects.after_delete(&key, &object);
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": { "name": name, "kind": target.resource.plural, "uid": object["metadata"]["uid"] },
    });
    Ok(json_response(StatusCode::OK, &status))
}

fn scale(objects: &mut Objects, call: &Call<'_>, target: &Target, name: &str) -> Result<Response, Refusal> {
    let key = target.key(name);
    let mut object = objects.by_key.get(&key).cloned().ok_or_else(|| Refusal::not_found(&target.resource, name))?;
    if call.method != Method::GET {
        let body = call.json()?;
        check_conflict(&target.resource, &object, &body["metadata"], name)?;
        let replicas = body["spec"]["replicas"].as_u64();
        let replicas = replicas.ok_or_else(|| {
            Refusal::invalid(&target.resource, name, "spec.replicas", "must be greater than or equal to 0")
        })?;
        object["spec"]["replicas"] = json!(replicas);
        if !call.is_dry_run() {
            objects.put(key.clone(), object);
            objects.reconcile(&key);
            object = objects.by_key[&key].clone();
        }
    }
    let document = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": name, "namespace": target.namespace, "uid": object["metadata"]["uid"],
            "resourceVersion": object["metadata"]["resourceVersion"],
        },
        "spec": { "replicas": object["spec"]["replicas"] }, "status": { "replicas": object["status"]["replicas"] },
    });
    Ok(json_response(StatusCode::OK, &document))
}

fn log(objects: &Objects, call: &Call<'_>, target: &Target, name: &str) -> Result<Response, Refusal> {
    let key = target.key(name);
    let pod = objects.by_key.get(&key).ok_or_else(|| Refusal::not_found(&target.resource, name))?;
    let containers: Vec<&str> = pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|container| container["name"].as_str())
        .collect();
    let container = call.query.get("container").map(String::as_str);
    if let Some(container) = container.filter(|container| !containers.contains(container)) {
        return Err(Refusal::bad(format!("container {container} is not valid for pod {name}")));
    }
    if container.is_none() && containers.len() > 1 {
        let choices = containers.join(" ");
        return Err(Refusal::bad(format!(
            "a container name must be specified for pod {name}, choose one of: [{choices}]"
        )));
    }
    let is_previous = call.query.get("previous").is_some_and(|value| value == "true");
    let of_container =
        container.map(|container| log_key(&target.namespace, &format!("{name}.{container}"), is_previous));
    let of_pod = log_key(&target.namespace, name, is_previous);
    let log = of_container.and_then(|key| objects.logs.get(&key)).or_else(|| objects.logs.get(&of_pod));
    let Some(log) = log else {
        if is_previous {
            let container = containers.first().copied().unwrap_or_default();
            return Err(Refusal::bad(format!(
                "previous terminated container \"{container}\" in pod \"{name}\" not found"
            )));
        }
        return Ok(text_response(String::new()));
    };
    let lines: Vec<&str> = log.lines().collect();
    let tail = call.query.get("tailLines").and_then(|value| value.parse::<usize>().ok()).unwrap_or(lines.len());
    let text: String = lines[lines.len().saturating_sub(tail)..].iter().map(|line| format!("{line}\n")).collect();
    Ok(text_response(text))
}
