//! The store calls that a completion makes before it calls the model.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use threadkeep::Part;
use threadkeep::core::{ChatAnswer, ChatModel, ChatRequest, DeltaSink, Finish, ModelError};

use crate::TestServer;
use crate::pausable_store::StoreControl;
use crate::server::TestConfig;

/// A model that records the store calls that precede each call to the model.
#[derive(Debug)]
struct CallRecorder {
    store_control: StoreControl,
    calls_before: Arc<Mutex<Vec<&'static str>>>,
}

#[async_trait]
impl ChatModel for CallRecorder {
    fn name(&self) -> &str {
        "recorder"
    }

    async fn answer(&self, _: &ChatRequest, _: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        *self.calls_before.lock().unwrap() = self.store_control.take_calls();
        let parts = vec![Part::Text("In 3 minutes.".to_owned())];
        Ok(ChatAnswer { parts, finish: Finish::Stop, model: "recorder".to_owned(), usage: None })
    }
}

#[tokio::test]
async fn completions_read_a_conversation_once_before_calling_the_model() {
    let (store_control, calls_before) = (StoreControl::default(), Arc::default());
    let model =
        Arc::new(CallRecorder { store_control: store_control.clone(), calls_before: Arc::clone(&calls_before) });
    let server =
        TestServer::start_with_control(&store_control, TestConfig { model: Some(model), ..TestConfig::default() })
            .await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    let thread = conversation["id"].as_str().unwrap();
    let chat =
        json!({ "messages": [{ "role": "user", "content": "When?" }], "metadata": { "thread": thread }, "model": "m" });
    let response = json!({ "input": "And then?", "conversation": thread });
    for (path, body) in [("/v1/chat/completions", chat), ("/v1/responses", response)] {
        for _ in 0..2 {
            store_control.take_calls();
            client.post(path, body.clone()).await.expect(200);
            let calls = std::mem::take(&mut *calls_before.lock().unwrap());
            // The calls list the server's keys, read the conversation, and lock it with a commit.
            assert_eq!(calls, ["list_records", "read_thread", "commit"], "{path}");
        }
    }
}
