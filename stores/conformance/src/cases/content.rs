//! Reading returns exactly what was written.

use threadkeep_core::{
    Batch, Content, ImageReference, Map, NewMessage, OpenThread, Part, RecordOwner, RecordWrite, Replacement, Role,
    Source, ThreadPatch, TokenDetails, ToolCall, ToolResult, Usage,
};

use crate::conversation::Conversation;
use crate::fixtures::{
    ana, appending, at, batch, json, message_id, message_with, note_write, put, system, thread_id, thread_key, user,
    user_id, user_message,
};
use crate::run::TestEnv;

/// Texts that often break stores: Unicode edge cases, control characters, and syntax of SQL, JSON and the codec.
pub(crate) const TEXTS: [&str; 16] = [
    "",
    " ",
    "\n\r\n\t",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇲🇽",
    "שלום עולם, مرحبا بالعالم \u{202e}reversed\u{202c}",
    "e\u{301} é n\u{303} ñ",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠜎 𪚥",
    "\u{feff}byte order mark",
    "\u{ffff}\u{10ffff}\u{fffd}",
    "\u{1}\u{7f}\u{85}\u{2028}\u{2029}",
    "'; DROP TABLE messages; --",
    "%_\\ \"quoted\" 'single' `tick`",
    r#"{"looks":"like JSON"}"#,
    "\\u0000 is not a NUL",
    "1u\"looks like the codec\"",
    "ﷺ ẞ ſ İ ı Ⅷ ﬁ",
];

/// Returns content with every field set, and with numbers that easily lose precision.
pub(crate) fn full_content() -> Content {
    let fields = r#"{"rank_score": 1150.5, "similarity": 0.234, "big": 18446744073709551615, "small": -9223372036854775808,
        "tiny": 5e-324, "huge": 1.7976931348623157e308, "third": 0.1, "nothing": null, "deep": [[[{"z": 1, "a": 2}]]]}"#;
    let fields: Map = serde_json::from_str(fields).expect("valid JSON");
    let call =
        ToolCall { id: "call_1".to_owned(), name: "get".to_owned(), arguments: json("{ \"b\":1,\n\t\"a\":1.0 }") };
    let result = ToolResult { call_id: "call_1".to_owned(), output: "{\"ok\": true}".to_owned(), is_error: true };
    let image = ImageReference {
        url: "https://example.org/a.png".to_owned(),
        description: Some("a 🚇".to_owned()),
        detail: Some("low".to_owned()),
    };
    Content {
        author: Some("Ana Gómez".to_owned()),
        parts: vec![
            Part::Text("first".to_owned()),
            Part::Reasoning("hm".to_owned()),
            Part::ToolCall(call),
            Part::ToolResult(result),
            Part::Image(image),
            Part::Image(ImageReference { url: String::new(), description: None, detail: None }),
            Part::Raw { format: "openai.responses".to_owned(), json: json(RAW) },
            Part::Text("last".to_owned()),
        ],
        agent: Some("CIRCLE".to_owned()),
        data: Some(json("[18446744073709551615, 1150.5, 0.234, 1e400, 1.10]")),
        sources: vec![Source {
            kind: "ruling".to_owned(),
            id: "2026754".to_owned(),
            title: Some("RUBRO".to_owned()),
            score: Some(1150.5),
            distance: Some(0.234),
            fields: fields.clone(),
        }],
        usage: Some(Usage {
            model: Some("gpt".to_owned()),
            input_tokens: u64::MAX,
            output_tokens: 0,
            details: TokenDetails { reasoning: 0, cached_input: 5, cache_write: 0 },
            cost_usd: Some(0.1 + 0.2),
            duration_ms: Some(1),
        }),
        metadata: fields,
        ..Content::empty(Role::Assistant)
    }
}

/// JSON that reformatting would change.
const RAW: &str = "{ \"b\" : 1,\t\"a\":[ 1.0,1.00 , 1e2 ],\n \"é\":\"\\u00e9\\/\\ud83d\\ude87\", \"a\" : null  }";

pub(super) async fn content_round_trips(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let mut contents = vec![full_content(), Content::empty(Role::User), Content::empty(Role::System)];
    for role in Role::ALL {
        contents.push(Content::text(role, "plain"));
        contents.push(Content { agent: Some("a".to_owned()), ..Content::text(role, "plain") });
    }
    contents.push(Content { parts: vec![Part::Text(String::new()); 2], ..Content::empty(Role::User) });
    let messages = (1..).zip(&contents).map(|(number, content)| message_with(number, content.clone())).collect();
    conversation.commit(&appending(messages), at(1)).await;
    let read: Vec<_> = conversation.messages(at(2)).await.into_iter().map(|message| message.content).collect();
    assert_eq!(read, contents);
    let replace = vec![Replacement { id: message_id(2), content: full_content() }];
    conversation.commit(&Batch { replace, ..batch("replace") }, at(3)).await;
    assert_eq!(conversation.messages(at(4)).await[1].content, full_content());
}

pub(super) async fn raw_items_keep_every_byte(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let raw = Part::Raw { format: "openai.responses".to_owned(), json: json(RAW) };
    let content = Content { parts: vec![raw], data: Some(json(RAW)), ..Content::empty(Role::Assistant) };
    let raw_batch = Batch {
        append: vec![message_with(1, content)],
        put: vec![put(system("run"), "journal", RAW)],
        ..batch("keeps")
    };
    conversation.commit(&raw_batch, at(1)).await;
    let read = &conversation.messages(at(2)).await[0].content;
    let Part::Raw { json, .. } = &read.parts[0] else { panic!("unexpected part: {:?}", read.parts) };
    assert_eq!((json.as_str(), read.data.as_ref().map(|data| data.as_str())), (RAW, Some(RAW)));
    let owner = RecordOwner::Thread(conversation.id);
    let record = store.client.find_record(&ana(), &owner, &system("run"), "journal", at(2)).await;
    assert_eq!(record.expect("reading works").expect("the record exists").value.as_str(), RAW);
}

pub(super) async fn numbers_round_trip_exactly(env: &TestEnv<'_>) {
    let store = env.open().await;
    let numbers = [
        "1150.5",
        "0.234",
        "18446744073709551615",
        "-9223372036854775808",
        "9007199254740993",
        "5e-324",
        "1.7976931348623157e308",
        "0.30000000000000004",
        "-0.0",
        "1e-7",
    ];
    let json: String = numbers.join(", ");
    let map: Map = serde_json::from_str(&format!("{{\"numbers\": [{json}]}}")).expect("valid JSON");
    let open = OpenThread { metadata: map.clone(), state: map.clone(), ..OpenThread::new(&ana(), thread_id(1)) };
    let conversation = Conversation::open_as(&store.client, &ana(), &open, at(0)).await;
    conversation
        .commit(&appending(vec![message_with(1, Content { metadata: map.clone(), ..full_content() })]), at(1))
        .await;
    let thread = conversation.thread(at(2)).await;
    assert_eq!((&thread.metadata, &thread.state), (&map, &map));
    let message = &conversation.messages(at(2)).await[0];
    assert_eq!(message.content.metadata, map);
    assert_eq!(message.content.usage.as_ref().map(|usage| usage.input_tokens), Some(u64::MAX));
    assert_eq!(message.content.sources[0].score, Some(1150.5));
}

pub(super) async fn unicode_text_round_trips(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let messages = (1..).zip(TEXTS).map(|(number, text)| user_message(number, text)).collect();
    conversation.commit(&appending(messages), at(1)).await;
    assert_eq!(conversation.texts(at(2)).await, TEXTS);
    for (number, text) in (1..).zip(TEXTS) {
        let mut metadata = Map::new();
        metadata.insert(text.to_owned(), text.into());
        let patch = ThreadPatch {
            title: Some(Some(text.to_owned())),
            metadata: Some(metadata.clone()),
            state: Some(metadata.clone()),
            expires_at: None,
        };
        conversation.commit(&Batch { patch, ..batch(&format!("patch {number}")) }, at(2)).await;
        let thread = conversation.thread(at(3)).await;
        assert_eq!((thread.title.as_deref(), &thread.metadata, &thread.state), (Some(text), &metadata, &metadata));
    }
    // Names may contain all characters except control characters.
    let names = TEXTS.into_iter().filter(|text| !text.is_empty() && !text.chars().any(char::is_control));
    for (number, name) in (100..).zip(names) {
        let scope = user(&format!("tenant {name}"), name);
        let open = OpenThread::new(&scope, thread_id(number)).with_key(thread_key(name));
        let conversation = Conversation::open_as(client, &scope, &open, at(4)).await;
        let with_external_id = NewMessage { external_id: Some(name.to_owned()), ..user_message(1, name) };
        let commit = Batch { put: vec![put(system(name), name, "1")], append: vec![with_external_id], ..batch(name) };
        conversation.commit(&commit, at(5)).await;
        assert_eq!(conversation.thread(at(6)).await.key, Some(thread_key(name)));
        assert_eq!(conversation.messages(at(6)).await[0].external_id.as_deref(), Some(name));
        let write = RecordWrite { namespace: system(name), ..note_write(RecordOwner::User(user_id(name)), name, "2") };
        client.write_record(&scope, &write, at(6)).await.expect("writing works");
        for (owner, value) in [(write.owner.clone(), "2"), (RecordOwner::Thread(conversation.id), "1")] {
            let found = client.find_record(&scope, &owner, &system(name), name, at(7)).await.expect("reading works");
            assert_eq!(found.map(|record| record.value), Some(json(value)), "{name}");
        }
    }
}

pub(super) async fn long_messages_round_trip(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let long = |number: u128| format!("{number} {}", "añ🚇 ".repeat(140_000));
    assert!(long(1).len() > 1024 * 1024);
    for number in 1..=5 {
        conversation.commit(&appending(vec![user_message(number, &long(number))]), at(1)).await;
    }
    let texts = conversation.texts(at(2)).await;
    assert!(texts.iter().zip(1..).all(|(text, number)| *text == long(number)) && texts.len() == 5);
}

// S1.41
pub(super) async fn returned_values_are_copies(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.commit(&appending(vec![message_with(1, full_content())]), at(1)).await;
    let mut messages = conversation.messages(at(2)).await;
    messages[0].content.parts.clear();
    messages[0].content.metadata.insert("changed".to_owned(), true.into());
    let mut thread = conversation.thread(at(2)).await;
    thread.metadata.insert("changed".to_owned(), true.into());
    assert_eq!(conversation.messages(at(2)).await[0].content, full_content());
    assert_eq!(conversation.thread(at(2)).await.metadata, Map::new());
}
