//! Help text about the built-in assistants.

use threadkeep::agent::plugin::Example;

use super::BUILT_IN;

/// Returns the names of the built-in assistants, in the order of the list.
pub(crate) fn names() -> String {
    BUILT_IN.iter().map(|plugin| plugin.name).collect::<Vec<_>>().join(", ")
}

/// Returns the description of `chat`, with the abilities of each assistant's offline model.
pub(crate) fn chat_details() -> String {
    let abilities = BUILT_IN.iter().map(|plugin| plugin.offline_abilities).filter(|abilities| !abilities.is_empty());
    format!(
        "Talk with an assistant\n\nWithout an API key for a language model, the offline model answers: {}. Ctrl-C stops \
         an answer and keeps the conversation. With --json, each line of standard input is a question, and each line of \
         the output is the turn that answers it.",
        abilities.collect::<Vec<_>>().join("; ")
    )
}

/// Returns the assistants' examples of a command, each preceded by a newline. Descriptions start at `column`.
pub(crate) fn command_examples(command: &str, column: usize) -> String {
    let is_of_command = |example: &&Example| example.command.split(' ').next() == Some(command);
    lines(BUILT_IN.iter().flat_map(|plugin| plugin.examples).filter(is_of_command), column)
}

/// Formats examples for help text, each preceded by a newline.
pub(crate) fn lines<'a>(examples: impl IntoIterator<Item = &'a Example>, column: usize) -> String {
    let line = |Example { command, shows }: &Example| {
        let command = format!("  threadkeep {command}  ");
        format!("\n{}", format!("{command:column$}{shows}").trim_end())
    };
    examples.into_iter().map(line).collect()
}
