//! Uploading, listing, searching and deleting documents.

use std::sync::Arc;

use serde_json::{Value, json};
use threadkeep::core::{Embedder, EmbedderError, Embedding};
use threadkeep::memory::{LibraryUpload, NewLibraryDocument, Passage, UploadState};
use threadkeep::{Scope, Timestamp};
use threadkeep_server::{KeyRole, ServerOptions};
use tokio::sync::Semaphore;

use crate::TestServer;
use crate::server::{Answer, Client, TIMEOUT, TestConfig, send};

const HANDBOOK: &str =
    "# Handbook\n\n## Stove\n\nThe stove burns paraffin.\n\n## Leave\n\nLeave lasts eighteen weeks.\n";

/// Sends a form with a file and text fields.
pub(crate) async fn upload(client: &Client, name: &str, text: &[u8], fields: &[(&str, &str)]) -> Answer {
    send(upload_request(client, name, text, fields)).await
}

fn upload_request(client: &Client, name: &str, text: &[u8], fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let mut body = Vec::new();
    for (field, value) in fields {
        let part = format!("--bound\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let head = format!("--bound\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(text);
    body.extend_from_slice(b"\r\n--bound--\r\n");
    client.request("POST", "/v1/files").header("content-type", "multipart/form-data; boundary=bound").body(body)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Waits until a file is no longer being processed.
async fn wait_until_processed(client: &Client, id: &str) -> Value {
    wait_for(client, id, |file| file["status"] != "uploaded").await
}

async fn wait_for(client: &Client, id: &str, is_reached: impl Fn(&Value) -> bool) -> Value {
    let waiting = async {
        loop {
            let file = client.get(&format!("/v1/files/{id}")).await.expect(200);
            if is_reached(&file) {
                return file;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap()
}

async fn listed_names(client: &Client, query: &str) -> Vec<String> {
    let page = client.get(&format!("/v1/files{query}")).await.expect(200);
    page["data"].as_array().unwrap().iter().map(|file| text_of(&file["filename"]).to_owned()).collect()
}

async fn found_files(client: &Client, body: Value) -> Vec<String> {
    let found = client.post("/v1/files/search", body).await.expect(200);
    found["data"].as_array().unwrap().iter().map(|passage| text_of(&passage["file_id"]).to_owned()).collect()
}

#[tokio::test]
async fn documents_are_uploaded_listed_searched_and_deleted() {
    let server = TestServer::start().await;
    let client = server.client();
    let created = upload(&client, "handbook.md", HANDBOOK.as_bytes(), &[]).await.expect(200);
    let id = text_of(&created["id"]).to_owned();
    let file = wait_until_processed(&client, &id).await;
    assert_eq!(
        (&file["object"], &file["status"], &file["bytes"]),
        (&json!("file"), &json!("processed"), &json!(HANDBOOK.len()))
    );
    assert_eq!((&file["passages"], &file["processed_passages"]), (&json!(2), &json!(2)));
    assert_eq!((&file["purpose"], &file["library"]), (&json!("assistants"), &json!("documents")));
    let path = format!("/v1/files/{id}");
    let content = client.get(&format!("{path}/content")).await;
    assert_eq!((content.status, content.text.as_str()), (200, HANDBOOK));
    // A browser must not execute an uploaded page.
    assert_eq!(content.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(
        (content.header("content-disposition"), content.header("x-content-type-options")),
        ("attachment", "nosniff")
    );

    let found = client.post("/v1/files/search", json!({ "query": "What does the stove burn?", "limit": 1.0 })).await;
    let found = found.expect(200);
    let passage = &found["data"][0];
    assert_eq!((&passage["file_id"], &passage["filename"]), (&json!(id), &json!("handbook.md")));
    assert!(text_of(&passage["place"]).starts_with("Handbook > Stove"), "{found}");
    assert!(text_of(&passage["text"]).contains("paraffin") && found["meaning"] == "absent", "{found}");
    // The same passages are found by the assistants and by the command line.
    let options = threadkeep::memory::PassageOptions::default();
    let me = Scope::user("local", "me").unwrap();
    let passages = server.memory.find_passages(&me, "documents", "stove", &options).await.unwrap().passages;
    assert_eq!(passages[0].document, id);

    upload(&client, "other.txt", b"A walrus.", &[("library", "animals")]).await.expect(200);
    upload(&client, "page.html", b"<p>A narwhal.", &[("purpose", "user_data")]).await.expect(200);
    assert_eq!(listed_names(&client, "?order=asc").await, ["handbook.md", "page.html"]);
    assert_eq!(listed_names(&client, "?library=animals").await, ["other.txt"]);
    assert_eq!(listed_names(&client, "?purpose=user_data").await, ["page.html"]);
    assert_eq!(listed_names(&client, &format!("?order=asc&after={id}")).await, ["page.html"]);
    assert_eq!(client.get("/v1/files?limit=101").await.code(400), "integer_above_max_value");
    assert_eq!(client.get("/v1/files?after=file-unknown").await.code(404), "not_found");

    assert_eq!(client.delete(&path).await.expect(200), json!({ "id": id, "object": "file", "deleted": true }));
    assert_eq!(client.delete(&path).await.code(404), "not_found");
    assert_eq!(client.get(&format!("{path}/content")).await.code(404), "not_found");
    assert_eq!(found_files(&client, json!({ "query": "stove" })).await, Vec::<String>::new());
    assert_eq!(listed_names(&client, "").await, ["page.html"]);
}

#[tokio::test]
async fn invalid_uploads_are_rejected_and_store_nothing() {
    let server = TestServer::start().await;
    let client = server.client();
    let large = vec![b'x'; 16 * 1024 * 1024 + 1];
    let nested = format!("{} x", "> ".repeat(200));
    for (name, text, fields, status, code, param) in [
        ("a.pdf", &b"%PDF"[..], &[][..], 400, "unsupported_file", "file"),
        ("a.txt", &b"\xff\xfe"[..], &[], 400, "unsupported_file", "file"),
        ("a.txt", &b"  \n"[..], &[], 400, "unsupported_file", "file"),
        ("a.md", nested.as_bytes(), &[], 400, "unsupported_file", "file"),
        ("a.txt", &large[..], &[], 413, "file_too_large", "file"),
        ("a.txt", &b"x"[..], &[("purpose", "batch")], 400, "unsupported_purpose", "purpose"),
        ("a.txt", &b"x"[..], &[("library", "../x")], 400, "invalid_request", "library"),
        ("a.txt", &b"x"[..], &[("expires", "1")], 400, "unknown_parameter", "expires"),
    ] {
        let error = upload(&client, name, text, fields).await.error(status);
        assert_eq!((&error["code"], &error["param"]), (&json!(code), &json!(param)), "{error}");
    }
    let body = client.request("POST", "/v1/files").body("x");
    assert_eq!(send(body).await.code(415), "unsupported_media_type");
    let too_large = vec![b'x'; 21 * 1024 * 1024];
    assert_eq!(upload(&client, "a.txt", &too_large, &[]).await.code(413), "body_too_large");
    assert_eq!(listed_names(&client, "").await, Vec::<String>::new());
    for wrong in [json!({}), json!({ "query": "x", "limit": 0 }), json!({ "query": "x", "library": "" })] {
        assert_eq!(client.post("/v1/files/search", wrong).await.status, 400);
    }
    let long = client.post("/v1/files/search", json!({ "query": "x".repeat(70_000) })).await;
    assert_eq!(long.error(400)["param"], "query");
}

#[tokio::test]
async fn repeated_uploads_with_a_key_create_one_file() {
    let server = TestServer::start().await;
    let client = server.client();
    let repeat = async |text: &str| {
        let request = upload_request(&client, "a.md", text.as_bytes(), &[]).header("idempotency-key", "k-1");
        send(request).await
    };
    let (first, second) = tokio::join!(repeat("# One"), repeat("# One"));
    let third = repeat("# One").await;
    let id = first.expect(200)["id"].clone();
    assert_eq!((&second.expect(200)["id"], &third.expect(200)["id"]), (&id, &id));
    assert_eq!(third.header("idempotency-replayed"), "true");
    assert!(repeat("# Two").await.error(400)["code"].as_str().unwrap().contains("idempotency"));
    assert_eq!(listed_names(&client, "").await, ["a.md"]);
    let id = text_of(&id);
    assert_eq!(client.get(&format!("/v1/files/{id}/content")).await.text, "# One");
}

#[tokio::test]
async fn users_read_files_of_their_tenant_but_change_only_their_own() {
    let server = TestServer::start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let reader = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    let eve = server.client_with_new_key("acme", Some("eve"), &[KeyRole::Write]).await;
    let shared = upload(&tenant, "shared.md", b"Trains run on Sundays.", &[]).await.expect(200);
    let own = upload(&ana, "own.md", b"Trains to my grandmother.", &[]).await.expect(200);
    let (shared, own) = (text_of(&shared["id"]), text_of(&own["id"]));
    for client in [&ana, &reader] {
        let mut found = found_files(client, json!({ "query": "trains" })).await;
        found.sort();
        let mut expected = [shared, own];
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert_eq!(client.get(&format!("/v1/files/{shared}/content")).await.text, "Trains run on Sundays.");
    }
    assert_eq!(found_files(&eve, json!({ "query": "trains" })).await, [shared]);
    assert_eq!(listed_names(&ana, "").await, ["own.md"]);
    assert_eq!(listed_names(&ana, "?owner=tenant").await, ["shared.md"]);
    assert_eq!(listed_names(&tenant, "").await, ["shared.md"]);
    for path in [format!("/v1/files/{own}"), format!("/v1/files/{own}/content")] {
        assert_eq!(eve.get(&path).await.code(404), "not_found");
    }
    assert_eq!(eve.delete(&format!("/v1/files/{own}")).await.code(404), "not_found");
    assert_eq!(ana.delete(&format!("/v1/files/{shared}")).await.code(403), "tenant_file");
    // A key that may only read cannot change files.
    assert_eq!(upload(&reader, "x.md", b"x", &[]).await.code(403), "role_missing");
    assert_eq!(reader.delete(&format!("/v1/files/{own}")).await.code(403), "role_missing");
    // A tenant key acts for a user.
    assert_eq!(listed_names(&tenant.as_user("ana"), "").await, ["own.md"]);
    tenant.as_user("ana").delete(&format!("/v1/files/{own}")).await.expect(200);
    assert_eq!(listed_names(&ana, "").await, Vec::<String>::new());
}

#[tokio::test]
async fn documents_added_on_the_command_line_are_files_without_content() {
    let server = TestServer::start().await;
    let client = server.client();
    let me = Scope::user("local", "me").unwrap();
    let passages = vec![Passage { place: "line 1".to_owned(), text: "A walrus.".to_owned() }];
    let id = "/home/me/animals #1.md".to_owned();
    let document = NewLibraryDocument { id, title: "animals.md".to_owned(), revision: "1".to_owned(), passages };
    server.memory.put_library_document(&me, "documents", document, None).await.unwrap();
    let page = client.get("/v1/files").await.expect(200);
    let file = &page["data"][0];
    assert_eq!(
        (&file["filename"], &file["status"], &file["bytes"]),
        (&json!("animals.md"), &json!("processed"), &json!(null))
    );
    let id = text_of(&file["id"]);
    assert_eq!(client.get(&format!("/v1/files/{id}")).await.expect(200), *file);
    assert_eq!(found_files(&client, json!({ "query": "walrus" })).await, [id]);
    assert_eq!(client.get(&format!("/v1/files/{id}/content")).await.code(404), "content_not_stored");
    client.delete(&format!("/v1/files/{id}")).await.expect(200);
    assert_eq!(server.memory.list_library(&me, "documents").await.unwrap(), []);
    // The command line removes uploads completely, too.
    let uploaded = upload(&client, "a.md", b"# A", &[]).await.expect(200);
    let id = text_of(&uploaded["id"]).to_owned();
    wait_until_processed(&client, &id).await;
    assert!(server.memory.remove_library_document(&me, "documents", &id).await.unwrap());
    assert_eq!(client.get(&format!("/v1/files/{id}")).await.code(404), "not_found");
}

/// An embedder that waits for a permit before each call.
#[derive(Debug)]
struct PausedEmbedder(Arc<Semaphore>);

#[async_trait::async_trait]
impl Embedder for PausedEmbedder {
    fn model(&self) -> &str {
        "paused"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError> {
        self.0.acquire().await.unwrap().forget();
        if texts.iter().any(|text| text.contains("unspeakable")) {
            return Err(EmbedderError::InvalidAnswer("no embedding".to_owned()));
        }
        let embedding = |_: &String| Embedding { model: "paused".to_owned(), vector: vec![1.0, 0.5] };
        Ok(texts.iter().map(embedding).collect())
    }
}

/// Returns a configuration with a paused embedder, whose uploads return at once, and the permits of the embedder.
fn paused_config() -> (TestConfig, Arc<Semaphore>) {
    let (config, permits) = (TestConfig::default(), Arc::new(Semaphore::new(0)));
    let options = ServerOptions { upload_wait: std::time::Duration::ZERO, ..config.options };
    (TestConfig { options, embedder: Some(Arc::new(PausedEmbedder(Arc::clone(&permits)))), ..config }, permits)
}

/// Returns a document with 100 passages, which are embedded in two calls.
fn long_document() -> String {
    (0..100).map(|number| format!("# Heading {number}\n\nParagraph {number} about walruses.\n\n")).collect()
}

#[tokio::test]
async fn progress_of_large_documents_is_reported() {
    let (config, permits) = paused_config();
    let server = TestServer::start_with(config).await;
    let client = server.client();
    let created = upload(&client, "long.md", long_document().as_bytes(), &[]).await.expect(200);
    let id = text_of(&created["id"]).to_owned();
    assert_eq!(
        (&created["status"], &created["passages"], &created["processed_passages"]),
        (&json!("uploaded"), &json!(100), &json!(0))
    );
    permits.add_permits(1);
    let partial = wait_for(&client, &id, |file| file["processed_passages"] == 64).await;
    assert_eq!(partial["status"], "uploaded");
    permits.add_permits(1);
    let processed = wait_until_processed(&client, &id).await;
    assert_eq!((&processed["status"], &processed["processed_passages"]), (&json!("processed"), &json!(100)));
    // A document that cannot be embedded is listed with the reason.
    permits.add_permits(1);
    let failing = upload(&client, "bad.md", b"An unspeakable word.", &[]).await.expect(200);
    let failed = wait_until_processed(&client, text_of(&failing["id"])).await;
    assert_eq!(failed["status"], "error");
    assert!(failed["status_details"].as_str().is_some_and(|details| !details.is_empty()), "{failed}");
    client.delete(&format!("/v1/files/{}", text_of(&failing["id"]))).await.expect(200);
}

#[tokio::test]
async fn files_that_are_deleted_while_they_are_processed_leave_nothing() {
    let (config, permits) = paused_config();
    let server = TestServer::start_with(config).await;
    let client = server.client();
    let created = upload(&client, "long.md", long_document().as_bytes(), &[]).await.expect(200);
    let id = text_of(&created["id"]).to_owned();
    permits.add_permits(1);
    wait_for(&client, &id, |file| file["processed_passages"] == 64).await;
    client.delete(&format!("/v1/files/{id}")).await.expect(200);
    permits.add_permits(1);
    // The process notices the deletion when it adds the next passages.
    let stopped = async {
        while permits.available_permits() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, stopped).await.unwrap();
    permits.add_permits(100);
    let me = Scope::user("local", "me").unwrap();
    assert_eq!(server.memory.list_library(&me, "documents").await.unwrap(), []);
    assert_eq!(server.memory.list_uploads(&me).await.unwrap(), []);
    let found = server.memory.find_passages(&me, "documents", "walruses", &Default::default()).await.unwrap();
    assert_eq!(found.passages, []);
}

#[tokio::test]
async fn processing_continues_after_an_interruption() {
    let (config, permits) = paused_config();
    let memory = threadkeep::open("memory:").await.unwrap();
    let mut server = TestServer::start_on(memory.clone(), config).await;
    let created = upload(&server.client(), "long.md", long_document().as_bytes(), &[]).await.expect(200);
    let id = text_of(&created["id"]).to_owned();
    permits.add_permits(1);
    wait_for(&server.client(), &id, |file| file["processed_passages"] == 64).await;
    // A server that stops releases its lease, so that another instance can continue.
    server.request_shutdown();
    server.wait_until_stopped().await.unwrap();
    let (config, permits) = paused_config();
    permits.add_permits(100);
    let server = TestServer::start_on(memory, config).await;
    let client = server.client();
    let processed = wait_until_processed(&client, &id).await;
    assert_eq!((&processed["status"], &processed["processed_passages"]), (&json!("processed"), &json!(100)));
    assert_eq!(found_files(&client, json!({ "query": "paragraph 99 walruses", "limit": 1 })).await, [id]);
}

/// Returns an upload whose process was killed and whose lease has expired.
fn abandoned(id: &str) -> LibraryUpload {
    LibraryUpload {
        id: format!("file-{}", id.repeat(32)),
        library: "documents".to_owned(),
        filename: "a.md".to_owned(),
        purpose: "assistants".to_owned(),
        format: "markdown".to_owned(),
        bytes: 3,
        digest: "files:0".to_owned(),
        created_at: Timestamp::from_millis(0).unwrap(),
        state: UploadState::Receiving,
        passages: 1,
        stored_passages: 0,
        error: None,
        leased_until: Timestamp::from_millis(1).unwrap(),
    }
}

/// If a process is killed, its upload remains, and the upload's lease expires.
#[tokio::test]
async fn uploads_of_killed_processes_are_resumed_or_reported() {
    let server = TestServer::start().await;
    let me = Scope::user("local", "me").unwrap();
    server.memory.store_upload(&me, abandoned("a"), "# A").await.unwrap();
    let receiving = threadkeep::memory::StoredUpload { upload: abandoned("b"), version: 0 };
    server.memory.update_upload(&me, receiving).await.unwrap();
    let client = server.client();
    assert_eq!(wait_until_processed(&client, &abandoned("a").id).await["status"], "processed");
    let interrupted = client.get(&format!("/v1/files/{}", abandoned("b").id)).await.expect(200);
    assert_eq!(interrupted["status"], "error");
    assert!(text_of(&interrupted["status_details"]).contains("interrupted"), "{interrupted}");
    client.delete(&format!("/v1/files/{}", abandoned("b").id)).await.expect(200);
    assert_eq!(listed_names(&client, "").await, ["a.md"]);
}

/// A caller that may only read sees an interrupted upload, but does not resume it.
#[tokio::test]
async fn readers_do_not_resume_uploads() {
    let server = TestServer::start().await;
    let reader = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    let writer = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let ana = Scope::user("acme", "ana").unwrap();
    server.memory.store_upload(&ana, abandoned("a"), "# A").await.unwrap();
    let id = abandoned("a").id;
    let stored = server.memory.find_upload(&ana, &id).await.unwrap().unwrap();
    for _ in 0..3 {
        assert_eq!(reader.get(&format!("/v1/files/{id}")).await.expect(200)["status"], "uploaded");
    }
    assert_eq!(
        server.memory.find_upload(&ana, &id).await.unwrap().unwrap().version,
        stored.version,
        "nothing was written"
    );
    assert_eq!(wait_until_processed(&writer, &id).await["status"], "processed");
}
