//! The exact stored bytes. Changing the format would make old data unreadable: add a version instead.

#![expect(clippy::unwrap_used, reason = "panics report the location of a failed assumption")]

use proptest::prelude::*;
use serde_json::json;
use threadkeep_core::codec::{ThreadAttributes, decode_content, decode_thread, encode_content, encode_thread};
use threadkeep_core::{
    Content, ImageReference, JsonText, Map, Part, Role, Source, StoreError, ThreadPatch, TokenDetails, ToolCall,
    ToolResult, Usage,
};

fn map(value: serde_json::Value) -> Map {
    match value {
        serde_json::Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

fn full_content() -> Content {
    Content {
        role: Role::Assistant,
        author: Some("Ana".to_owned()),
        parts: vec![
            Part::Text("words".to_owned()),
            Part::ToolCall(ToolCall {
                id: "call_1".to_owned(),
                name: "get_route".to_owned(),
                arguments: JsonText::new(r#"{ "from":"A", "n": 1.50 }"#).unwrap(),
            }),
            Part::ToolResult(ToolResult { call_id: "call_1".to_owned(), output: "12 min".to_owned(), is_error: true }),
            Part::Image(ImageReference {
                url: "https://example.org/a.png".to_owned(),
                description: Some("a cat".to_owned()),
                detail: None,
            }),
            Part::Reasoning("hm".to_owned()),
            Part::Raw {
                format: "openai.responses".to_owned(),
                json: JsonText::new("{\"type\" : \"compaction\",\"x\":\"\\u00e9\\u0000\",\"n\":1e400}").unwrap(),
            },
        ],
        agent: Some("CIRCLE".to_owned()),
        data: Some(JsonText::new("[ 18446744073709551615 ]").unwrap()),
        sources: vec![Source {
            kind: "tesis".to_owned(),
            id: "2031234".to_owned(),
            title: Some("AMPARO".to_owned()),
            score: Some(1150.5),
            distance: Some(0.234),
            fields: map(json!({"epoca": "11a", "anio": 2024})),
        }],
        usage: Some(Usage {
            model: Some("m".to_owned()),
            input_tokens: 1,
            output_tokens: 2,
            details: TokenDetails::default(),
            cost_usd: Some(0.0014),
            duration_ms: Some(3),
        }),
        metadata: map(json!({"z": 1, "a": null})),
    }
}

const FULL_CONTENT: &str = r#"1a{"author":"Ana","parts":[{"text":"words"},{"tool_call":{"id":"call_1","name":"get_route","arguments":{ "from":"A", "n": 1.50 }}},{"tool_result":{"call_id":"call_1","output":"12 min","is_error":true}},{"image":{"url":"https://example.org/a.png","description":"a cat"}},{"reasoning":"hm"},{"raw":{"format":"openai.responses","json":{"type" : "compaction","x":"\u00e9\u0000","n":1e400}}}],"agent":"CIRCLE","data":[ 18446744073709551615 ],"sources":[{"kind":"tesis","id":"2031234","title":"AMPARO","score":1150.5,"distance":0.234,"fields":{"epoca":"11a","anio":2024}}],"usage":{"model":"m","input_tokens":1,"output_tokens":2,"cost_usd":0.0014,"duration_ms":3},"metadata":{"z":1,"a":null}}"#;

#[test]
fn token_details_are_stored_if_present() {
    let details = TokenDetails { cached_input: 1, reasoning: 2, ..TokenDetails::default() };
    let usage = Usage { input_tokens: 3, output_tokens: 4, details, ..Usage::default() };
    let content = Content { usage: Some(usage), ..Content::text(Role::Assistant, "hi") };
    let text = r#"1a{"parts":[{"text":"hi"}],"usage":{"input_tokens":3,"output_tokens":4,"details":{"cached_input":1,"reasoning":2}}}"#;
    assert_eq!(encode_content(&content).unwrap(), text);
    assert_eq!(decode_content(text).unwrap(), content);
}

#[test]
fn plain_text_is_stored_as_a_string() {
    for (role, text) in [
        (Role::System, r#"1s"hi""#),
        (Role::User, r#"1u"hi""#),
        (Role::Assistant, r#"1a"hi""#),
        (Role::Tool, r#"1t"hi""#),
    ] {
        let content = Content::text(role, "hi");
        assert_eq!(encode_content(&content).unwrap(), text);
        assert_eq!(decode_content(text).unwrap(), content);
    }
}

// S3.30: scores and distances are decoded exactly.
#[test]
fn full_content_round_trips_byte_for_byte() {
    assert_eq!(encode_content(&full_content()).unwrap(), FULL_CONTENT);
    assert_eq!(decode_content(FULL_CONTENT).unwrap(), full_content());
}

#[test]
fn content_without_parts_differs_from_an_empty_text() {
    let empty = Content::empty(Role::User);
    assert_eq!(encode_content(&empty).unwrap(), "1u{}");
    assert_eq!(decode_content("1u{}").unwrap(), empty);
    assert_ne!(decode_content(r#"1u"""#).unwrap(), empty);
}

#[test]
fn unknown_fields_of_content_are_ignored() {
    let content = decode_content(r#"1u{"parts":[{"text":"hi"}],"mood":"good"}"#).unwrap();
    assert_eq!(content, Content::text(Role::User, "hi"));
}

#[test]
fn invalid_text_is_reported_without_quoting_it() {
    for text in ["", "1", "1u", "1x\"secret\"", "u\"secret\"", "1u\"secret", "1u{\"parts\":\"secret\"}", "0u\"secret\""]
    {
        let error = decode_content(text).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{text}: {error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    assert!(matches!(decode_content("2u\"hi\""), Err(StoreError::Incompatible(_))));
    assert!(matches!(decode_thread("2{}"), Err(StoreError::Incompatible(_))));
    assert!(matches!(decode_thread("1{\"title\":7}"), Err(StoreError::Corrupt { .. })));
}

#[test]
fn unknown_fields_of_a_thread_are_preserved() {
    let stored = r#"1{"mood":"good","title":"Trip","metadata":{"b":1,"a":2},"later":[1]}"#;
    let mut attributes = decode_thread(stored).unwrap();
    assert_eq!((attributes.title.as_deref(), attributes.metadata.len()), (Some("Trip"), 2));
    attributes.apply(ThreadPatch { title: Some(None), state: Some(map(json!({"n": 0}))), ..ThreadPatch::default() });
    assert_eq!(encode_thread(&attributes), r#"1{"mood":"good","later":[1],"metadata":{"b":1,"a":2},"state":{"n":0}}"#);
    assert_eq!(encode_thread(&ThreadAttributes::default()), "1{}");
}

#[test]
fn oversized_message_is_rejected() {
    let content = Content::text(Role::User, "x".repeat(4 * 1024 * 1024));
    let error = encode_content(&content).unwrap_err();
    assert_eq!(error.to_string(), "message bytes: 4194308 exceeds the maximum of 4194304");
}

proptest! {
    #[test]
    fn any_text_round_trips(text in any::<String>(), author in any::<Option<String>>()) {
        let content = Content { author, ..Content::text(Role::User, text) };
        prop_assert_eq!(decode_content(&encode_content(&content).unwrap()).unwrap(), content);
    }

    #[test]
    fn decoding_never_panics(text in any::<String>(), start in "[1-3]?[suat]?[\"{]?") {
        drop(decode_content(&format!("{start}{text}")));
        drop(decode_thread(&format!("{start}{text}")));
    }

    #[test]
    fn numbers_round_trip_exactly(score in any::<f64>().prop_filter("finite", |score| score.is_finite())) {
        let source = Source {
            kind: "k".to_owned(), id: "i".to_owned(), title: None, score: Some(score), distance: None, fields: Map::new(),
        };
        let content = Content { sources: vec![source], ..Content::empty(Role::Assistant) };
        let decoded = decode_content(&encode_content(&content).unwrap()).unwrap();
        prop_assert_eq!(decoded.sources[0].score.unwrap().to_bits(), score.to_bits());
    }
}
