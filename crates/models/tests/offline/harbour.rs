//! A made-up harbour: ferries between piers, and a conversation in which tools answer at once.

use serde_json::{Value, json};
use threadkeep_core::{
    ChatAnswer, ChatDelta, ChatMessage, ChatModel, ChatRequest, Finish, JsonText, Part, Role, ToolDescription,
    ToolResult,
};
use threadkeep_models::{Choice, Intent, Names, OfflineModel, Slot};

pub(crate) const REFUSAL: &str = "I only know about ferries.";

fn harbour() -> OfflineModel {
    let pier = Names::new()
        .with(Choice::new("p1", "North Quay").hinted(["red"]), &["the quay"])
        .with(Choice::new("p2", "South Quay").hinted(["blue"]), &["the quay"])
        .with(Choice::new("p3", "Mill Island"), &["the island", "mills"])
        .with(Choice::new("p4", "Fort"), &["old fort"])
        .with(Choice::new("p5", "Red Rock"), &[]);
    OfflineModel::builder("I know the ferries of the harbour.")
        .kind("pier", pier)
        .kind("boat", Names::words(["fast boat", "slow boat"]))
        .kind("line", Names::words(["red", "blue"]))
        .pronoun("there", "pier")
        .intent(
            Intent::new("departures")
                .example("When is the next ferry from North Quay?")
                .patterns(["next|when|leave* [next] ferr*|boat|boats", "next {boat}", "departures"])
                .slot(Slot::required("pier", "pier").asks("From which pier?").narrowed_by(|choices, slots| {
                    let line = slots.value("line");
                    let on_line = |choice: &&Choice| choice.hints.iter().any(|hint| json!(hint) == line);
                    choices.iter().filter(on_line).cloned().collect()
                }))
                .slot(Slot::optional("boat", "boat"))
                .slot(Slot::optional("line", "line"))
                .calls("get_departures")
                .says(|outcome| {
                    let pier = outcome.slots().label("pier");
                    match outcome.result("get_departures")["minutes"].as_u64() {
                        Some(minutes) => format!("From {pier} in {minutes} min."),
                        None => format!("No ferry leaves {pier} today."),
                    }
                }),
        )
        .intent(
            Intent::new("crossing")
                .example("How do I get from the Fort to Mill Island?")
                .patterns(["how get|go|cross", "from {pier} to {pier}", "crossing"])
                .slot(Slot::required("from", "pier").after(["from"]).asks("From where?"))
                .slot(Slot::required("to", "pier").after(["to"]).fresh().asks("Where to?"))
                .slot(Slot::optional("via", "pier").after(["via", "change at"]))
                .calls("get_crossing"),
        )
        .intent(
            Intent::new("weather")
                .pattern("weather|waves|storm*")
                .unless("weather yesterday")
                .calls("get_weather")
                .then_calls("get_warnings", |outcome| {
                    let waves = outcome.result("get_weather")["waves_m"].as_f64()?;
                    (waves > 2.0).then(|| json!({"waves_m": waves}))
                })
                .says(|outcome| {
                    let waves = outcome.result("get_weather")["waves_m"].clone();
                    match outcome.result("get_warnings") {
                        Value::String(warning) => format!("Waves of {waves} m. {warning}"),
                        _ => format!("Waves of {waves} m."),
                    }
                }),
        )
        .intent(
            Intent::new("home")
                .pattern("my home pier")
                .calls("get_home")
                .yields(|outcome| {
                    let home = outcome.result("get_home");
                    match home["name"].as_str() {
                        Some(name) => vec![("pier".to_owned(), Choice::new(home["id"].clone(), name))],
                        None => Vec::new(),
                    }
                })
                .says(|outcome| format!("Home is {}.", outcome.result("get_home")["name"].as_str().unwrap_or("?"))),
        )
        .intent(Intent::new("note").pattern("remember [that] {note...}").calls("save_note"))
        .otherwise(|turn| turn.question().contains("joke").then(|| REFUSAL.to_owned()))
        .build()
        .expect("every kind is found")
}

const TOOLS: [&str; 6] = ["get_departures", "get_crossing", "get_weather", "get_warnings", "get_home", "save_note"];

/// A conversation with the harbour, in which tools answer at once.
pub(crate) struct Talk {
    pub(crate) model: OfflineModel,
    pub(crate) request: ChatRequest,
    pub(crate) gives: fn(&str, &Value) -> Result<Value, String>,
}

impl Talk {
    pub(crate) fn begin() -> Self {
        Self::with(|tool, arguments| {
            Ok(match tool {
                "get_departures" => json!({"minutes": 7}),
                "get_weather" => json!({"waves_m": 1.5}),
                "get_home" => json!({"id": "p9", "name": "Smugglers Cove"}),
                _ => json!(format!("{tool} {arguments}")),
            })
        })
    }

    pub(crate) fn with(gives: fn(&str, &Value) -> Result<Value, String>) -> Self {
        let tools = TOOLS
            .map(|name| ToolDescription {
                name: name.to_owned(),
                description: name.to_owned(),
                parameters: JsonText::new("{}").expect("this is JSON"),
            })
            .to_vec();
        Self { model: harbour(), request: ChatRequest { tools, ..ChatRequest::default() }, gives }
    }

    pub(crate) async fn answer(&self) -> ChatAnswer {
        let mut heard = String::new();
        let mut sink = |delta| match delta {
            ChatDelta::Text(text) => heard.push_str(&text),
            other => panic!("{other:?}"),
        };
        let answer = self.model.answer(&self.request, &mut sink).await.expect("it always answers");
        assert_eq!(heard, answer.text(), "what is streamed is what is said");
        assert_eq!(self.model.answer(&self.request, &mut |_| {}).await.ok(), Some(answer.clone()), "the same again");
        answer
    }

    /// Says something; gives the calls that came of it, and the last words.
    pub(crate) async fn say(&mut self, text: &str) -> (Vec<String>, String) {
        self.request.messages.push(ChatMessage::text(Role::User, text));
        let mut calls = Vec::new();
        loop {
            let answer = self.answer().await;
            self.request.messages.push(answer.message());
            if answer.tool_calls().next().is_none() {
                assert_eq!(answer.finish, Finish::Stop);
                return (calls, answer.text());
            }
            assert_eq!(answer.finish, Finish::ToolCalls);
            for call in answer.tool_calls() {
                let arguments: Value = call.arguments.read().expect("arguments are JSON");
                calls.push(format!("{} {arguments}", call.name));
                let (output, is_error) = match (self.gives)(&call.name, &arguments) {
                    Ok(output) => (output.to_string(), false),
                    Err(error) => (error, true),
                };
                let result = ToolResult { call_id: call.id.clone(), output, is_error };
                let parts = vec![Part::ToolResult(result)];
                self.request.messages.push(ChatMessage { role: Role::Tool, author: None, parts, seq: None });
            }
        }
    }

    pub(crate) async fn calls(&mut self, text: &str) -> Vec<String> {
        self.say(text).await.0
    }

    pub(crate) async fn words(&mut self, text: &str) -> String {
        let (calls, words) = self.say(text).await;
        assert_eq!(calls, [""; 0], "{text}");
        words
    }
}
