//! Options and content that a provider's API cannot express are reported, so that doors can reject them instead of dropping them.

use serde_json::json;
use threadkeep_core::{
    AnswerFormat, ChatMessage, ChatModel, ChatRequest, ImageReference, JsonText, Map, Part, Role, Sampling,
};
use threadkeep_models::{Provider, ProviderConfig, ProviderModel};

fn with_part(role: Role, part: Part) -> ChatRequest {
    let messages = vec![ChatMessage { role, author: None, parts: vec![part], seq: None }];
    ChatRequest { messages, ..ChatRequest::default() }
}

fn with_sampling(sampling: Sampling) -> ChatRequest {
    ChatRequest { sampling, ..ChatRequest::default() }
}

fn image(url: &str, detail: Option<&str>) -> Part {
    Part::Image(ImageReference { url: url.to_owned(), description: None, detail: detail.map(str::to_owned) })
}

fn raw(format: &str, json: serde_json::Value) -> Part {
    Part::Raw { format: format.to_owned(), json: JsonText::from(&json) }
}

#[test]
fn options_and_content_that_a_request_cannot_contain_are_named() {
    let ignored = |provider, request: &ChatRequest| {
        let config =
            ProviderConfig { base_url: "http://127.0.0.1:1".to_owned(), ..ProviderConfig::new(provider, "m", None) };
        ProviderModel::new(config).expect("the address is valid").ignored(request)
    };
    let url = "https://example.com/map.png";
    let file = raw("openai.chat", json!({ "type": "file", "file": { "file_id": "file-1" } }));
    let file_url = raw("openai.content", json!({ "type": "input_file", "file_url": "https://example.com/a.pdf" }));
    let stored_image = raw("openai.content", json!({ "type": "input_image", "file_id": "file-1" }));
    let bias = Map::from_iter([("1".to_owned(), json!(5))]);
    let (openai, groq, anthropic) = (Provider::OpenAi, Provider::Groq, Provider::Anthropic);
    for (request, [by_openai, by_groq, by_anthropic]) in [
        (with_part(Role::User, image(url, None)), [None, None, None]),
        (with_part(Role::User, image(url, Some("auto"))), [None, None, None]),
        (with_part(Role::User, image(url, Some("low"))), [None, None, Some("detail")]),
        (with_part(Role::User, image("file:///etc/passwd", None)), [Some("image"); 3]),
        (with_part(Role::User, file), [None, Some("file"), Some("file")]),
        (with_part(Role::User, file_url.clone()), [Some("file"); 3]),
        (with_part(Role::User, stored_image), [Some("file"); 3]),
        // Such parts of other roles come from histories, and no API accepts them.
        (with_part(Role::Assistant, file_url), [None, None, None]),
        (with_part(Role::User, raw("other.format", json!({}))), [None, None, None]),
        (with_sampling(Sampling { logit_bias: bias, ..Sampling::default() }), [None, None, Some("logit_bias")]),
        (
            with_sampling(Sampling { verbosity: Some("low".to_owned()), ..Sampling::default() }),
            [None, None, Some("verbosity")],
        ),
        (with_sampling(Sampling { seed: Some(7), ..Sampling::default() }), [None, None, Some("seed")]),
        (
            with_sampling(Sampling { presence_penalty: Some(0.5), ..Sampling::default() }),
            [None, None, Some("presence_penalty")],
        ),
        (with_sampling(Sampling { stop: vec!["END".to_owned()], ..Sampling::default() }), [None, None, None]),
        (ChatRequest { format: Some(AnswerFormat::Json), ..ChatRequest::default() }, [None, None, Some("format")]),
        (ChatRequest { temperature: Some(0.5), max_tokens: Some(5), ..ChatRequest::default() }, [None, None, None]),
    ] {
        let found = [openai, groq, anthropic].map(|provider| ignored(provider, &request));
        assert_eq!(found, [by_openai, by_groq, by_anthropic], "{request:?}");
    }
}
