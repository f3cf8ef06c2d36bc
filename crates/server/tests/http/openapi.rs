//! The OpenAPI document: programs that read such documents accept it, and a generated client can call the server.
//!
//! `cargo xtask test` installs the programs into the folders `python` and `node` of the target folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use threadkeep_server::Server;
use tokio::process::Command;

use crate::clients::{is_skipped, node_program, program};
use crate::doors::letters_door;
use crate::server::{TIMEOUT, TOKEN, TestConfig, TestServer};
use crate::v1::start_with_model;

/// Runs a program, which must succeed, and returns its output.
async fn run(command: &mut Command) -> String {
    // Proxies in the environment must not be used for the loopback interface.
    command.env("NO_PROXY", "*").kill_on_drop(true);
    let output = tokio::time::timeout(TIMEOUT * 3, command.output()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn write_document(folder: &Path) -> PathBuf {
    let file = folder.join("openapi.json");
    std::fs::write(&file, Server::openapi()).unwrap();
    file
}

#[test]
fn operations_have_unique_names_and_responses_have_descriptions() {
    let document: Value = serde_json::from_str(&Server::openapi()).unwrap();
    let mut names = BTreeSet::new();
    let paths = document["paths"].as_object().unwrap();
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name), "{method} {path}: the name {name} is not unique");
            for (status, response) in operation["responses"].as_object().unwrap() {
                let description = response["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{method} {path} {status} has no description");
            }
        }
    }
    for name in ["list_threads", "append_messages", "create_response", "list_records_at_former_path"] {
        assert!(names.contains(name), "{name}");
    }
}

#[tokio::test]
async fn document_is_valid() {
    if is_skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    run(Command::new(program("openapi-spec-validator")).arg(write_document(folder.path()))).await;
}

/// The document is also valid for a server with a door that declares its own credentials.
#[tokio::test]
async fn document_with_a_door_is_valid() {
    let config = TestConfig { doors: vec![letters_door()], ..TestConfig::default() };
    let server = TestServer::start_with(config).await;
    let text = server.client().get("/v1/openapi.json").await.text;
    let document: Value = serde_json::from_str(&text).unwrap();
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    let mut used = BTreeSet::new();
    for operation in operations {
        assert!(operation["operationId"].is_string(), "{operation}");
        let required = operation["security"].as_array().into_iter().flatten();
        used.extend(required.flat_map(|scheme| scheme.as_object().unwrap().keys().cloned()));
    }
    let declared: BTreeSet<String> = schemes.keys().cloned().collect();
    assert_eq!(used, declared, "the used schemes are not the declared ones");
    assert!(used.contains("letters_signature"));
    if is_skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, text).unwrap();
    run(Command::new(program("openapi-spec-validator")).arg(file)).await;
}

/// ETags that the server sends match the document's pattern for conditions, so clients can send them back.
#[tokio::test]
async fn etags_match_the_pattern_of_the_document() {
    let document: Value = serde_json::from_str(&Server::openapi()).unwrap();
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "hello").await;
    let thread_tag = client.get(&format!("/v1/threads/{thread}")).await.header("etag").to_owned();
    assert!(thread_tag.contains('-'), "{thread_tag}");
    let record = client.send("PUT", "/v1/records/notes/a", serde_json::json!({ "value": 1 })).await;
    for (path, method, tag, accepts_any) in [
        ("/v1/threads/{id}", "patch", thread_tag.as_str(), true),
        ("/v1/records/{namespace}/{key}", "put", record.header("etag"), false),
    ] {
        let parameters = document["paths"][path][method]["parameters"].as_array().unwrap();
        let parameter = parameters.iter().find(|parameter| parameter["name"] == "If-Match").unwrap();
        let pattern = regex::Regex::new(parameter["schema"]["pattern"].as_str().unwrap()).unwrap();
        assert!(pattern.is_match(tag), "{path}: {tag}");
        assert!(pattern.is_match("\"17\"") && !pattern.is_match("17"), "{path}");
        assert_eq!(pattern.is_match("*"), accepts_any, "{path}");
    }
}

#[tokio::test]
async fn generated_python_client_calls_the_server() {
    if is_skipped() {
        return;
    }
    let (folder, (server, _)) = (tempfile::tempdir().unwrap(), start_with_model().await);
    let mut generate = Command::new(program("openapi-python-client"));
    generate.args(["generate", "--meta", "none", "--path"]).arg(write_document(folder.path()));
    generate.arg("--output-path").arg(folder.path().join("threadkeep_client")).current_dir(folder.path());
    // The generator runs its formatter if that is on the path.
    generate.env("PATH", program("python").parent().unwrap());
    let warnings = run(&mut generate).await;
    assert!(!warnings.contains("WARNING"), "{warnings}");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/generated_client.py");
    let mut calls = Command::new(program("python"));
    calls.args([script, &server.url(""), TOKEN]).env("PYTHONPATH", folder.path());
    let result: Value = serde_json::from_str(&run(&mut calls).await).unwrap();
    assert_eq!(result["calls"], 17, "{result}");
    assert_eq!(result["texts"], serde_json::json!(["hello", "and again"]));
}

#[tokio::test]
async fn generated_types_compile() {
    let (Some(generator), Some(compiler)) = (node_program("openapi-typescript"), node_program("tsc")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (document, types) = (write_document(folder.path()), folder.path().join("openapi.d.ts"));
    run(Command::new(generator).arg(document).arg("--output").arg(&types)).await;
    run(Command::new(compiler).args(["--noEmit", "--strict"]).arg(&types)).await;
}
