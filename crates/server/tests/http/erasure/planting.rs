//! Plants words of a user: sends each route a request that contains a unique word.

use serde_json::{Value, json};
use threadkeep_server::RouteInfo;

use crate::Client;
use crate::server::send;
use crate::v1::files::upload;

/// The planted words, each with its route.
#[derive(Debug, Default)]
pub(super) struct Planted {
    /// Words that the store contains until the user is erased.
    pub(super) stored: Vec<(String, String)>,
    /// Words that were never stored.
    pub(super) unstored: Vec<(String, String)>,
}

/// What a route did with a word.
enum Effect {
    /// The route stored the word.
    Stored,
    /// The test stored the word and deleted it through the route. The word may remain in the store until the next sweep.
    Removed,
    /// The route does not store users' text, for this reason.
    NotStored(&'static str),
}

use Effect::{NotStored, Removed, Stored};

pub(super) struct Planter {
    tenant: Client,
    ana: Client,
    pub(super) planted: Planted,
}

const READ_ONLY: Effect = NotStored("it only reads");

impl Planter {
    pub(super) fn new(tenant: Client, ana: Client) -> Self {
        Self { tenant, ana, planted: Planted::default() }
    }

    /// Sends the word to the route, and records the effect.
    pub(super) async fn plant(&mut self, route: &RouteInfo, word: &str) {
        let name = format!("{} {}", route.method, route.path);
        match self.write(&route.method, &route.path, word).await {
            Stored => self.planted.stored.push((word.to_owned(), name)),
            Removed => {}
            NotStored(reason) => {
                assert!(!reason.is_empty());
                self.planted.unstored.push((word.to_owned(), name));
            }
        }
    }

    /// Creates a thread of Ana with a message that contains the word. Returns the ids of the thread and the message.
    async fn create_thread_with(&self, word: &str) -> (String, String) {
        let thread = self.ana.new_thread().await;
        let appended = self.ana.say(&thread, &sentence_with(word)).await;
        (thread, to_text(&appended["messages"][0]["id"]))
    }

    async fn ask_assistant(&self, client: &Client, text: &str) -> Value {
        client.post("/v1/agents/keeper/turns", json!({ "text": text })).await.expect(200)
    }

    /// Creates a webhook of Ana whose URL and description contain the word, and returns its id.
    async fn create_webhook(&self, word: &str) -> String {
        let body = json!({ "url": format!("https://{word}.invalid/"), "description": sentence_with(word) });
        to_text(&self.ana.post("/v1/webhooks", body).await.expect(201)["webhook"]["id"])
    }

    async fn create_response(&self, body: Value) -> String {
        to_text(&self.ana.post("/v1/responses", body).await.expect(200)["id"])
    }

    async fn create_completion(&self, word: &str) -> String {
        let body = json!({ "messages": [{ "role": "user", "content": sentence_with(word) }], "store": true });
        to_text(&self.ana.post("/v1/chat/completions", body).await.expect(200)["id"])
    }

    /// Returns the ids of a new conversation and of its item.
    async fn create_conversation(&self, word: &str) -> (String, String) {
        let items = json!([{ "role": "user", "content": sentence_with(word) }]);
        let body = json!({ "items": items, "metadata": { "topic": word } });
        let conversation = to_text(&self.ana.post("/v1/conversations", body).await.expect(200)["id"]);
        let items = self.ana.get(&format!("/v1/conversations/{conversation}/items")).await.expect(200);
        (conversation, to_text(&items["data"][0]["id"]))
    }

    /// Sends a word to a route in every field that accepts text.
    async fn write(&self, method: &str, path: &str, word: &str) -> Effect {
        match path.split('/').nth(1) {
            Some("v1") => match path.split('/').nth(2).unwrap_or_default() {
                "threads" => self.write_to_thread(method, path, word).await,
                "files" => self.write_to_files(method, path, word).await,
                "responses" | "chat" | "conversations" | "embeddings" | "models" => {
                    self.write_to_openai(method, path, word).await
                }
                _ => self.write_to_other_rest(method, path, word).await,
            },
            _ => self.write_outside_v1(method, path, word).await,
        }
    }

    async fn write_to_thread(&self, method: &str, path: &str, word: &str) -> Effect {
        let (client, sentence) = (&self.ana, sentence_with(word));
        match (method, path) {
            ("POST", "/v1/threads") => {
                let body = json!({ "key": word, "title": sentence, "metadata": { word: sentence }, "state": { word: sentence } });
                let request = client.request("POST", path).header("idempotency-key", word);
                let answer = send(request.json(&body)).await;
                assert!([200, 201].contains(&answer.status), "{answer:?}");
                Stored
            }
            ("PATCH", "/v1/threads/{id}") => {
                let thread = client.new_thread().await;
                let body = json!({ "title": sentence, "metadata": { word: sentence } });
                client.send("PATCH", &format!("/v1/threads/{thread}"), body).await.expect(200);
                Stored
            }
            ("DELETE", "/v1/threads/{id}") => {
                let (thread, _) = self.create_thread_with(word).await;
                assert!(client.delete(&format!("/v1/threads/{thread}")).await.status < 300);
                Removed
            }
            ("POST", "/v1/threads/{id}/fork") => {
                let (thread, _) = self.create_thread_with(word).await;
                let body = json!({ "title": sentence, "metadata": { word: sentence } });
                client.post(&format!("/v1/threads/{thread}/fork"), body).await.expect(201);
                Stored
            }
            ("PUT", "/v1/threads/{id}/tools/{name}") => {
                let thread = client.new_thread().await;
                let path = format!("/v1/threads/{thread}/tools/{word}");
                client.send("PUT", &path, json!({ "enabled": false })).await.expect(200);
                Stored
            }
            ("POST", "/v1/threads/{id}/messages") => {
                let thread = client.new_thread().await;
                let message =
                    json!({ "role": "user", "text": sentence, "external_id": word, "metadata": { word: sentence } });
                let request = client.request("POST", &format!("/v1/threads/{thread}/messages"));
                let request = request.header("idempotency-key", word).json(&json!({ "messages": [message] }));
                send(request).await.expect(201);
                Stored
            }
            ("PUT", "/v1/threads/{id}/messages/{message}") => {
                let (thread, message) = self.create_thread_with("nothing").await;
                let body = json!({ "role": "user", "text": sentence });
                client.send("PUT", &format!("/v1/threads/{thread}/messages/{message}"), body).await.expect(200);
                Stored
            }
            ("DELETE", "/v1/threads/{id}/messages/{message}") => {
                let (thread, message) = self.create_thread_with(word).await;
                assert!(client.delete(&format!("/v1/threads/{thread}/messages/{message}")).await.status < 300);
                Removed
            }
            ("POST", "/v1/threads/{id}/context") => {
                let (thread, _) = self.create_thread_with("nothing").await;
                let body = json!({ "turn": word, "question": sentence, "policy": { "recall_from": "user" } });
                client.post(&format!("/v1/threads/{thread}/context"), body).await.expect(200);
                Stored
            }
            ("PUT", "/v1/threads/{id}/records/{namespace}/{key}") => {
                let thread = client.new_thread().await;
                let path = format!("/v1/threads/{thread}/records/{word}/{word}");
                client.send("PUT", &path, json!({ "value": sentence })).await.expect(200);
                Stored
            }
            ("DELETE", "/v1/threads/{id}/records/{namespace}/{key}") => {
                let thread = client.new_thread().await;
                let path = format!("/v1/threads/{thread}/records/{word}/{word}");
                client.send("PUT", &path, json!({ "value": sentence })).await.expect(200);
                assert!(client.delete(&path).await.status < 300);
                Removed
            }
            ("POST", "/v1/threads/{id}/turns/{turn}/cancel") => {
                let turn = self.ask_assistant(client, "hello").await;
                let path = format!("/v1/threads/{}/turns/{}/cancel", to_text(&turn["thread"]), to_text(&turn["turn"]));
                assert!(client.post(&path, json!({})).await.status < 500);
                NotStored("it stops a turn and accepts no text")
            }
            ("POST", "/v1/threads/{id}/approvals/{approval}") => {
                let turn = self.ask_assistant(client, &format!("delete {word}")).await;
                let path = format!("/v1/threads/{}/approvals", to_text(&turn["thread"]));
                let approval = to_text(&turn["approvals"][0]["id"]);
                // The audit log must not contain an invalid id either.
                assert_eq!(client.post(&format!("{path}/{word}"), json!({ "decision": "deny" })).await.status, 404);
                let body = json!({ "decision": "deny", "reason": sentence });
                client.post(&format!("{path}/{approval}"), body).await.expect(200);
                Stored
            }
            (
                "GET",
                "/v1/threads"
                | "/v1/threads/{id}"
                | "/v1/threads/{id}/messages"
                | "/v1/threads/{id}/messages/{message}"
                | "/v1/threads/{id}/context/{turn}"
                | "/v1/threads/{id}/records/{namespace}"
                | "/v1/threads/{id}/records/{namespace}/{key}"
                | "/v1/threads/{id}/turns/{turn}"
                | "/v1/threads/{id}/approvals/{approval}"
                | "/v1/threads/{id}/events"
                | "/v1/threads/{id}/tools",
            ) => READ_ONLY,
            _ => panic!("{method} {path} has no case here: add what the route stores for a user"),
        }
    }

    async fn write_to_other_rest(&self, method: &str, path: &str, word: &str) -> Effect {
        let (client, sentence) = (&self.ana, sentence_with(word));
        match (method, path) {
            ("PUT", "/v1/preferences/{key}") => {
                client.send("PUT", &format!("/v1/preferences/{word}"), json!({ "value": sentence })).await.expect(200);
                Stored
            }
            ("DELETE", "/v1/preferences/{key}") => {
                let path = format!("/v1/preferences/{word}");
                client.send("PUT", &path, json!({ "value": sentence })).await.expect(200);
                assert!(client.delete(&path).await.status < 300);
                Removed
            }
            ("PUT", "/v1/records/{namespace}/{key}") => {
                let path = format!("/v1/records/{word}/{word}");
                client.send("PUT", &path, json!({ "value": sentence })).await.expect(200);
                Stored
            }
            ("DELETE", "/v1/records/{namespace}/{key}") => {
                let path = format!("/v1/records/{word}/{word}");
                client.send("PUT", &path, json!({ "value": sentence })).await.expect(200);
                assert!(client.delete(&path).await.status < 300);
                Removed
            }
            ("POST", "/v1/import") => {
                let line = json!({ "messages": [{ "role": "user", "content": sentence }], "title": sentence });
                send(client.request("POST", path).body(line.to_string())).await.expect(200);
                Stored
            }
            ("DELETE", "/v1/users/{user}") => {
                let bob = self.tenant.as_user("bob");
                bob.say(&bob.new_thread().await, &sentence).await;
                self.tenant.delete("/v1/users/bob").await.expect(200);
                Removed
            }
            ("POST", "/v1/bulk/threads/delete") => {
                let thread = client.post("/v1/threads", json!({ "key": word, "title": sentence })).await;
                assert!([200, 201].contains(&thread.status), "{thread:?}");
                let deleted = client.post(path, json!({ "threads": [word] })).await.expect(200);
                assert_eq!(deleted["succeeded"], 1);
                Removed
            }
            ("POST", "/v1/bulk/threads/patch") => {
                let body = json!({ "threads": [client.new_thread().await], "title": sentence,
                    "metadata": { word: sentence }, "state": { word: sentence } });
                assert_eq!(client.post(path, body).await.expect(200)["succeeded"], 1);
                Stored
            }
            ("POST", "/v1/bulk/records") => {
                let record = json!({ "namespace": word, "key": word, "value": sentence });
                assert_eq!(client.post(path, json!({ "records": [record] })).await.expect(200)["succeeded"], 1);
                Stored
            }
            ("POST", "/v1/webhooks") => {
                self.create_webhook(word).await;
                Stored
            }
            ("PATCH", "/v1/webhooks/{webhook}") => {
                let path = format!("/v1/webhooks/{}", self.create_webhook("nothing").await);
                let body = json!({ "url": format!("https://{word}.invalid/"), "description": sentence });
                client.send("PATCH", &path, body).await.expect(200);
                Stored
            }
            ("DELETE", "/v1/webhooks/{webhook}") => {
                let path = format!("/v1/webhooks/{}", self.create_webhook(word).await);
                assert!(client.delete(&path).await.status < 300);
                Removed
            }
            ("POST", "/v1/webhooks/{webhook}/rotate" | "/v1/webhooks/{webhook}/deliveries/{event}/replay") => {
                NotStored("it accepts no text")
            }
            ("POST", "/v1/tokens") => NotStored("the token is returned and not stored"),
            ("POST" | "PATCH" | "DELETE", "/v1/keys" | "/v1/keys/{key}" | "/v1/keys/{key}/rotate") => {
                NotStored("keys belong to the tenant")
            }
            ("POST", "/v1/agents/{name}/run") => {
                let body = json!({ "user_query": sentence, "user_id": "ana" });
                send(client.request("POST", "/v1/agents/keeper/run").header("idempotency-key", word).json(&body))
                    .await
                    .expect(200);
                client.post("/v1/agents/keeper/run", json!({ "user_query": sentence })).await.expect(200);
                Stored
            }
            ("POST", "/v1/agents/{name}/turns") => {
                let body = json!({ "text": sentence, "thread": word, "given": { word: sentence } });
                send(client.request("POST", "/v1/agents/keeper/turns").header("idempotency-key", word).json(&body))
                    .await
                    .expect(200);
                self.ask_assistant(client, &format!("look {word}")).await;
                // This turn stays pending, so that its approval and journal exist when the user is erased.
                self.ask_assistant(client, &format!("delete {word}")).await;
                Stored
            }
            ("POST", "/v1/search") => {
                client.post(path, json!({ "query": sentence })).await.expect(200);
                READ_ONLY
            }
            ("POST", "/v1/recall") => {
                client.post(path, json!({ "question": sentence })).await.expect(200);
                READ_ONLY
            }
            ("POST", "/v1/erase") => {
                client.post(path, json!({ "user": word })).await.expect(403);
                NotStored("it erases; the tests call it at the end")
            }
            ("GET" | "POST", "/v1/session") => NotStored("it returns a cookie and stores nothing"),
            ("GET", "/v1/live") => NotStored("clients send subscriptions only"),
            (
                "GET",
                "/v1/openapi.json"
                | "/v1/preferences"
                | "/v1/preferences/{key}"
                | "/v1/records/{namespace}"
                | "/v1/records/{namespace}/{key}"
                | "/v1/analytics"
                | "/v1/export"
                | "/v1/agents"
                | "/v1/agents/{name}"
                | "/v1/agents/{name}/map"
                | "/v1/agents/{name}/source"
                | "/v1/caller"
                | "/v1/approvals"
                | "/v1/audit"
                | "/v1/keys"
                | "/v1/quotas"
                | "/v1/tenants"
                | "/v1/users"
                | "/v1/users/{user}"
                | "/v1/webhooks"
                | "/v1/webhooks/{webhook}"
                | "/v1/webhooks/{webhook}/deliveries",
            ) => READ_ONLY,
            _ => panic!("{method} {path} has no case here: add what the route stores for a user"),
        }
    }

    async fn write_to_files(&self, method: &str, path: &str, word: &str) -> Effect {
        let (client, sentence) = (&self.ana, sentence_with(word));
        match (method, path) {
            ("POST", "/v1/files") | ("DELETE", "/v1/files/{id}") => {
                let fields = [("library", word)];
                let uploaded = upload(client, &format!("{word}.md"), sentence.as_bytes(), &fields).await.expect(200);
                if method == "POST" {
                    return Stored;
                }
                client.delete(&format!("/v1/files/{}", to_text(&uploaded["id"]))).await.expect(200);
                Removed
            }
            ("POST", "/v1/files/search") => {
                client.post(path, json!({ "query": sentence, "library": word })).await.expect(200);
                READ_ONLY
            }
            ("GET", "/v1/files" | "/v1/files/{id}" | "/v1/files/{id}/content") => READ_ONLY,
            _ => panic!("{method} {path} has no case here: add what the route stores for a user"),
        }
    }

    async fn write_to_openai(&self, method: &str, path: &str, word: &str) -> Effect {
        let (client, sentence) = (&self.ana, sentence_with(word));
        match (method, path) {
            ("POST", "/v1/conversations") => {
                self.create_conversation(word).await;
                Stored
            }
            ("POST", "/v1/conversations/{id}") => {
                let (conversation, _) = self.create_conversation("nothing").await;
                let body = json!({ "metadata": { word: sentence } });
                client.post(&format!("/v1/conversations/{conversation}"), body).await.expect(200);
                Stored
            }
            ("DELETE", "/v1/conversations/{id}") => {
                let (conversation, _) = self.create_conversation(word).await;
                client.delete(&format!("/v1/conversations/{conversation}")).await.expect(200);
                Removed
            }
            ("POST", "/v1/conversations/{id}/items") => {
                let (conversation, _) = self.create_conversation("nothing").await;
                let body = json!({ "items": [{ "role": "user", "content": sentence }] });
                let request = client.request("POST", &format!("/v1/conversations/{conversation}/items"));
                send(request.header("idempotency-key", word).json(&body)).await.expect(200);
                Stored
            }
            ("DELETE", "/v1/conversations/{id}/items/{item}") => {
                let (conversation, item) = self.create_conversation(word).await;
                client.delete(&format!("/v1/conversations/{conversation}/items/{item}")).await.expect(200);
                Removed
            }
            ("POST", "/v1/responses") => {
                self.write_responses(word).await;
                Stored
            }
            ("POST", "/v1/responses/input_tokens") => {
                client.post(path, json!({ "input": sentence })).await.expect(200);
                NotStored("it only counts tokens")
            }
            ("POST", "/v1/responses/compact") => {
                client.post(path, json!({ "model": "m", "input": sentence })).await.expect(200);
                NotStored("it returns the result without storing it")
            }
            ("DELETE", "/v1/responses/{id}") => {
                let response = self.create_response(json!({ "input": sentence })).await;
                client.delete(&format!("/v1/responses/{response}")).await.expect(200);
                Removed
            }
            ("POST", "/v1/responses/{id}/cancel") => {
                let response = self.create_response(json!({ "input": sentence, "background": true })).await;
                // A response that is cancelled in progress stores no text.
                while client.get(&format!("/v1/responses/{response}")).await.expect(200)["status"] == "in_progress" {
                    tokio::task::yield_now().await;
                }
                assert!(client.post(&format!("/v1/responses/{response}/cancel"), json!({})).await.status < 500);
                Stored
            }
            ("POST", "/v1/chat/completions") => {
                let messages = json!([{ "role": "user", "content": sentence }]);
                for model in ["echo", "threadkeep/keeper"] {
                    let body = json!({ "model": model, "messages": messages });
                    client.post(path, body).await.expect(200);
                }
                let body = json!({ "messages": messages, "store": true, "metadata": { "topic": sentence } });
                send(client.request("POST", path).header("idempotency-key", word).json(&body)).await.expect(200);
                Stored
            }
            ("POST", "/v1/chat/completions/{id}") => {
                let completion = self.create_completion("nothing").await;
                let body = json!({ "metadata": { "topic": sentence } });
                client.post(&format!("/v1/chat/completions/{completion}"), body).await.expect(200);
                Stored
            }
            ("DELETE", "/v1/chat/completions/{id}") => {
                let completion = self.create_completion(word).await;
                client.delete(&format!("/v1/chat/completions/{completion}")).await.expect(200);
                Removed
            }
            ("POST", "/v1/embeddings") => {
                client.post(path, json!({ "input": sentence })).await.expect(200);
                NotStored("it returns embeddings without storing them")
            }
            (
                "GET",
                "/v1/conversations"
                | "/v1/responses"
                | "/v1/conversations/{id}"
                | "/v1/conversations/{id}/items"
                | "/v1/conversations/{id}/items/{item}"
                | "/v1/responses/{id}"
                | "/v1/responses/{id}/input_items"
                | "/v1/chat/completions"
                | "/v1/chat/completions/{id}"
                | "/v1/chat/completions/{id}/messages"
                | "/v1/models"
                | "/v1/models/{model}"
                | "/v1/models/threadkeep/{name}",
            ) => READ_ONLY,
            _ => panic!("{method} {path} has no case here: add what the route stores for a user"),
        }
    }

    /// Creates every kind of response: stored or not, in a conversation, in the background, from an assistant, with an idempotency key.
    async fn write_responses(&self, word: &str) {
        let sentence = sentence_with(word);
        let (conversation, _) = self.create_conversation("nothing").await;
        for body in [
            json!({ "input": sentence, "metadata": { "topic": sentence }, "instructions": sentence }),
            json!({ "input": sentence, "store": false }),
            json!({ "input": sentence, "conversation": conversation }),
            json!({ "input": sentence, "background": true }),
            json!({ "input": sentence, "model": "threadkeep/keeper" }),
            json!({ "input": sentence, "model": "threadkeep/keeper", "store": false }),
        ] {
            let first = self.create_response(body.clone()).await;
            if body["store"].is_null() && body["background"].is_null() && body["conversation"].is_null() {
                self.create_response(
                    json!({ "input": sentence, "previous_response_id": first, "model": body["model"] }),
                )
                .await;
            }
        }
        let request = self.ana.request("POST", "/v1/responses").header("idempotency-key", word);
        send(request.json(&json!({ "input": sentence }))).await.expect(200);
    }

    async fn write_outside_v1(&self, method: &str, path: &str, word: &str) -> Effect {
        let sentence = sentence_with(word);
        match (method, path) {
            ("POST", "/mcp") => {
                let params = json!({ "name": "add_memory", "arguments": { "text": sentence } });
                let body = json!({ "jsonrpc": "2.0", "id": word, "method": "tools/call", "params": params });
                let added = self.ana.post(path, body).await.expect(200);
                assert!(added["result"]["structuredContent"]["id"].is_string(), "{added}");
                Stored
            }
            // The tenant's key acts for the user that the body names.
            ("POST", "/chat" | "/{assistant}/chat") => {
                let path = path.replace("{assistant}", "keeper");
                let body = json!({ "message": sentence, "user_id": "ana" });
                self.tenant.post(&path, body).await.expect(200);
                Stored
            }
            ("POST", "/api/chat" | "/{assistant}/api/chat") => {
                let path = path.replace("{assistant}", "keeper");
                // The metadata of the thread also contains the query and the context.
                let body = json!({ "query": sentence, "userContext": { "note": sentence } });
                self.ana.post(&path, body).await.expect(200);
                Stored
            }
            ("POST", "/clear" | "/{assistant}/clear") => {
                let chat = path.replace("{assistant}", "keeper").replace("clear", "chat");
                self.ana.post(&chat, json!({ "message": sentence })).await.expect(200);
                let path = path.replace("{assistant}", "keeper");
                self.ana.post(&path, json!({})).await.expect(200);
                Removed
            }
            ("DELETE", "/conversations/{threadId}" | "/{assistant}/conversations/{threadId}") => {
                let (thread, _) = self.create_thread_with(word).await;
                let path = path.replace("{assistant}", "keeper").replace("{threadId}", &thread);
                assert!(self.ana.delete(&path).await.status < 500);
                Removed
            }
            (
                "GET",
                "/"
                | "/{assistant}/"
                | "/assets/{file}"
                | "/offline/"
                | "/offline/{file}"
                | "/offline/engine/{file}"
                | "/health"
                | "/{assistant}/health"
                | "/ready"
                | "/metrics"
                | "/docs"
                | "/docs/"
                | "/docs/{file}"
                | "/route"
                | "/{assistant}/route"
                | "/arrivals"
                | "/{assistant}/arrivals"
                | "/stations"
                | "/{assistant}/stations"
                | "/lines"
                | "/{assistant}/lines"
                | "/conversations/{threadId}/insights"
                | "/{assistant}/conversations/{threadId}/insights"
                | "/conversations/{threadId}"
                | "/{assistant}/conversations/{threadId}"
                | "/preferences/{user}"
                | "/{assistant}/preferences/{user}",
            ) => READ_ONLY,
            _ => panic!("{method} {path} has no case here: add what the route stores for a user"),
        }
    }
}

/// Returns a sentence that contains the word.
fn sentence_with(word: &str) -> String {
    format!("The key to the {word} is under the mat.")
}

fn to_text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
