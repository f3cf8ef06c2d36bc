//! The embeddings client, over real sockets.

use std::sync::Arc;

use serde_json::{Value, json};
use threadkeep_core::{Embedder, EmbedderError};
use threadkeep_models::{EmbedderConfig, EmbeddingModel, Provider, Secret};

use crate::server::{KEY, RecordingPacing, Reply, Server};

fn embedder(server: &Server, dimensions: Option<usize>) -> EmbeddingModel {
    let config = EmbedderConfig {
        base_url: format!("{}/v1", server.url),
        dimensions,
        ..EmbedderConfig::new(Provider::OpenAi, "text-embedding-3-small", Secret::new(KEY))
    };
    EmbeddingModel::with_pacing(config, Arc::new(RecordingPacing::default())).expect("the address is valid")
}

fn embeddings_json(vectors: &[(u64, &[f64])]) -> Value {
    let data: Vec<Value> = vectors
        .iter()
        .map(|(index, vector)| json!({"object": "embedding", "index": index, "embedding": vector}))
        .collect();
    json!({"object": "list", "model": "text-embedding-3-small", "data": data, "usage": {"prompt_tokens": 3, "total_tokens": 3}})
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[tokio::test]
async fn embeddings_are_assigned_to_texts_by_index() {
    let reply = Reply::json(200, &embeddings_json(&[(1, &[0.0, 1.0]), (0, &[1.0, 0.5])]));
    let server = Server::start([reply]).await;
    let embedder = embedder(&server, Some(2));
    let found = embedder.embed(&texts(&["a", "b"])).await.unwrap();
    assert_eq!(found.iter().map(|point| point.vector.clone()).collect::<Vec<_>>(), [[1.0, 0.5], [0.0, 1.0]]);
    assert_eq!(embedder.model(), "text-embedding-3-small/2");
    assert!(found.iter().all(|point| point.model == embedder.model()));
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /v1/embeddings HTTP/1.1");
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    let expected =
        json!({"input": ["a", "b"], "model": "text-embedding-3-small", "encoding_format": "float", "dimensions": 2});
    assert_eq!(request.body, expected);
}

#[tokio::test]
async fn texts_are_sent_in_batches_that_are_retried() {
    let full: Vec<(u64, &[f64])> = (0..128).map(|index| (index, &[1.0][..])).collect();
    let busy = Reply::json(429, &json!({"error": {"message": "slow down"}}));
    let replies = [busy, Reply::json(200, &embeddings_json(&full)), Reply::json(200, &embeddings_json(&[(0, &[2.0])]))];
    let server = Server::start(replies).await;
    let many: Vec<String> = (0..129).map(|number| number.to_string()).collect();
    let found = embedder(&server, None).embed(&many).await.unwrap();
    assert_eq!((found.len(), found[128].vector.as_slice()), (129, &[2.0_f32][..]));
    let sizes: Vec<usize> =
        server.requests().iter().map(|request| request.body["input"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [128, 128, 1]);
    assert!(embedder(&server, None).embed(&[]).await.unwrap().is_empty());
    assert_eq!(server.requests().len(), 3, "an empty list causes no request");
}

#[tokio::test]
async fn failures_report_their_cause_and_retryability() {
    for (replies, is_retryable, text) in [
        (
            vec![Reply::json(400, &json!({"error": {"message": "input is too long"}}))],
            false,
            "embedder rejected the request: input is too long",
        ),
        (
            vec![Reply::json(401, &json!({"error": {"message": format!("bad {KEY}")}}))],
            false,
            "embedder rejected the request: bad [key]",
        ),
        (
            vec![Reply::json(503, &json!({})), Reply::json(503, &json!({})), Reply::json(503, &json!({}))],
            true,
            "embedder unavailable",
        ),
        (
            vec![Reply::json(200, &embeddings_json(&[(0, &[1.0])]))],
            false,
            "embedder returned an invalid answer: expected 2 embeddings, found 1",
        ),
        (
            vec![Reply::json(200, &embeddings_json(&[(0, &[1.0]), (0, &[1.0])]))],
            false,
            "embedder returned an invalid answer: a text has no embedding",
        ),
        (
            vec![Reply::json(200, &embeddings_json(&[(0, &[1.0]), (7, &[1.0])]))],
            false,
            "embedder returned an invalid answer: an embedding has an index out of range",
        ),
        (
            vec![Reply::json(200, &embeddings_json(&[(0, &[1.0]), (1, &[1.0, 2.0])]))],
            false,
            "embedder returned an invalid answer: embeddings have different lengths",
        ),
        (
            vec![Reply::json(200, &embeddings_json(&[(0, &[1e300]), (1, &[1.0])]))],
            false,
            "embedder returned an invalid answer: an embedding is not a list of finite numbers",
        ),
        (
            vec![Reply::json(200, &json!({"data": [{"embedding": "AAAA"}, {"embedding": []}]}))],
            false,
            "embedder returned an invalid answer: an embedding is not a list of finite numbers",
        ),
        (vec![Reply::json(200, &json!([]))], false, "embedder returned an invalid answer: no data"),
    ] {
        let server = Server::start(replies).await;
        let error: EmbedderError = embedder(&server, None).embed(&texts(&["a", "b"])).await.unwrap_err();
        assert_eq!((error.is_retryable(), error.to_string().as_str()), (is_retryable, text));
        assert!(server.has_answered_all());
    }
}
