//! Prompts that a user can choose in a client. Their texts mention the tools to use.

use serde_json::{Map, Value};

use crate::{Tool, ToolFailure, Toolbox};

/// The maximum length of an argument, in characters.
const ARGUMENT_CHARS: usize = 500;

/// A prompt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prompt {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// The arguments: name, description, and whether it is required.
    pub(crate) arguments: &'static [(&'static str, &'static str, bool)],
    /// The tool that the prompt uses.
    tool: Tool,
    text: &'static str,
}

const PROMPTS: [Prompt; 3] = [
    Prompt {
        name: "what_did_i_decide",
        description: "Find what was decided about a topic in past conversations",
        arguments: &[("topic", "what the decision is about", true), ("when", "a date such as 2026-03", false)],
        tool: Tool::SearchMemory,
        text: "What did I decide about {topic}{when}? Search my past conversations with search_memory, with several wordings. Read \
            the conversation around the best hits. Answer with the decision, its reasons and its date, and quote the message. If later \
            messages changed the decision, say so. If you find nothing, say that, and do not guess.",
    },
    Prompt {
        name: "continue_conversation",
        description: "Read a past conversation and continue it",
        arguments: &[("topic", "what the conversation was about", true)],
        tool: Tool::ReadThread,
        text: "Find my past conversation about {topic} with search_memory, read it with read_thread, and summarise where we stopped: \
            what is done, what is decided, what is open. Then ask me how to continue.",
    },
    Prompt {
        name: "remember",
        description: "Store the important points of this conversation for later sessions",
        arguments: &[],
        tool: Tool::AddMemory,
        text: "List the facts and decisions from this conversation that later sessions need, one self-contained statement each, and \
            ask me which to keep. Store those with add_memory.",
    },
];

/// Returns the prompts whose tools are selected.
pub(crate) fn list(toolbox: &Toolbox) -> impl Iterator<Item = Prompt> {
    PROMPTS.into_iter().filter(|prompt| toolbox.tools().contains(prompt.tool))
}

/// Returns the text of a prompt with its arguments.
pub(crate) fn text(toolbox: &Toolbox, name: &str, arguments: &Map<String, Value>) -> Result<String, ToolFailure> {
    let prompt = list(toolbox).find(|prompt| prompt.name == name);
    let prompt = prompt.ok_or(ToolFailure::NotFound { what: "prompt", hint: "prompts/list lists the prompts" })?;
    if let Some(unknown) = arguments.keys().find(|name| !prompt.arguments.iter().any(|(known, ..)| known == name)) {
        return Err(ToolFailure::argument(
            unknown.chars().take(60).collect::<String>(),
            "the prompt has no such argument",
        ));
    }
    let (mut text, mut rest) = (String::new(), prompt.text);
    // The placeholders are in the order of the arguments, and are replaced in the text of the prompt only, not in values.
    for (name, _, is_required) in prompt.arguments {
        let value = arguments.get(*name).and_then(Value::as_str).map(str::trim).filter(|value| !value.is_empty());
        let value = match value {
            None if *is_required => return Err(ToolFailure::argument(*name, "is required")),
            None => String::new(),
            Some(value) if value.chars().count() > ARGUMENT_CHARS => {
                return Err(ToolFailure::argument(*name, format!("has more than {ARGUMENT_CHARS} characters")));
            }
            Some(value) if *name == "when" => format!(" in {value}"),
            Some(value) => value.to_owned(),
        };
        if let Some((before, after)) = rest.split_once(&format!("{{{name}}}")) {
            text.push_str(before);
            text.push_str(&value);
            rest = after;
        }
    }
    text.push_str(rest);
    Ok(text)
}
